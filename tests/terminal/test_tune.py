"""`specdec tune`: evidence on stdout, a profile in the configuration, or nothing at all."""

from __future__ import annotations

import json
import shutil
import signal
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Ran
from screen import Screen

Specdec = Callable[..., Ran]
Model = Callable[[str], Path]
Watch = Callable[..., Screen]
CONFIG = ".config/specdec/config.toml"
SHORT = ("-n", "8")


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    file = tmp_path / "prompts.jsonl"
    lines = [{"prompt": text, "category": "mine"} for text in ("hello", "the cat")]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: Model) -> Path:
    """A models directory with two drafts for `large`, and one that is none."""
    directory = tmp_path / "models"
    directory.mkdir()
    for name in ("draft", "story"):
        shutil.copy(model(name), directory / f"{name}.gguf")
    shutil.copy(model("renamed"), directory / "renamed.gguf")
    monkeypatch.setenv("SPECDEC_MODELS", str(directory))
    return directory


def config() -> Path:
    return Path.home() / CONFIG


def test_the_result_is_a_profile_that_a_run_can_use(
    specdec: Specdec, model: Model, models: Path, prompts: Path
) -> None:
    config().parent.mkdir(parents=True)
    config().write_text("# mine\ntemp = 0.5\n")
    target = model("large")
    ran = specdec("tune", "-m", target, "--prompts", prompts, *SHORT)
    assert ran.code == 0, ran.err
    text = config().read_text()
    assert text.startswith("# mine\ntemp = 0.5\n")
    values = tomllib.loads(text)["profiles"]["tuned"]
    assert values["model"] == str(target)
    assert values["threads"] == 1  # given by the environment
    assert values["batch-size"] in (256, 512, 1024)
    assert values["drafter"] in ("auto", "model", "suffix", "none")
    for evidence in ("BATCH SIZE", "DRAFT ALONE", "GUESSES FROM", "[profiles.tuned]"):
        assert evidence in ran.out
    assert "THREADS" not in ran.out
    assert text.endswith(ran.out[ran.out.index("[profiles.tuned]") :].rstrip() + "\n")
    params = specdec("run", "--profile", "tuned", "-n", "4", "--json", "hello").json["params"]
    assert params["batch_size"] == values["batch-size"]
    assert params["draft_tokens"] == values["draft-tokens"]
    assert params["temp"] == 0.5


def test_a_profile_with_a_draft_is_one_that_every_command_takes(
    specdec: Specdec, model: Model, models: Path, prompts: Path
) -> None:
    profile = f'model = "{model("large")}"\ndraft-model = "{models / "draft.gguf"}"\n'
    Path("specdec.toml").write_text(f"[profiles.tuned]\n{profile}draft-tokens = 2\n")
    chosen = ["--profile", "tuned", *SHORT, "--json"]
    run = specdec("run", *chosen, "hello").json
    assert run["draft_model"] == str(models / "draft.gguf")
    bench = specdec("bench", *chosen, "--prompts", prompts, "-r", "1").json
    assert {(row["drafter"], row["k"]) for row in bench["results"]} == {("model", 2)}
    document = specdec("tune", *chosen, "--prompts", prompts, "-b", "64", "--dry-run").json
    assert document["drafting"][1]["draft_models"] == [str(models / "draft.gguf")]


def test_the_document_holds_every_figure(
    specdec: Specdec, model: Model, models: Path, prompts: Path
) -> None:
    document = specdec(
        "tune", "-m", model("large"), "--prompts", prompts, *SHORT, "-t", "1", "--dry-run", "--json"
    ).json
    assert document["complete"]
    assert document["written"] is None
    assert document["threads"] == []
    assert {entry["setting"] for entry in document["batch_sizes"]} == {256, 512, 1024}
    assert all(entry["prompt_per_second"] > 0 for entry in document["batch_sizes"])
    assert {entry["drafter"] for entry in document["drafts"]} == {"draft", "story"}
    ways = [(entry["drafter"], entry["k"]) for entry in document["drafting"]]
    assert ways == [
        ("suffix", "auto"), ("auto", "auto"), ("model", "auto"), ("model", 2), ("model", 4),
        ("model", 8),
    ]  # fmt: skip
    assert all(entry["speedup"] > 0 for entry in document["drafting"])
    assert not config().exists()


def test_a_self_draft_and_a_named_draft_are_tried(
    specdec: Specdec, model: Model, models: Path, prompts: Path
) -> None:
    target = models / "large.gguf"
    shutil.copy(model("large"), target)
    made = specdec("draft", "make", target).out.strip()
    document = specdec(
        "tune", "-m", target, "-md", models / "draft.gguf", "--prompts", prompts, *SHORT,
        "-b", "64", "--dry-run", "--json",
    ).json  # fmt: skip
    assert document["batch_sizes"] == document["drafts"] == []
    both = [entry for entry in document["drafting"] if entry["drafter"] == "auto"]
    assert [entry["draft_models"] for entry in both] == [[str(models / "draft.gguf"), made]]
    assert "self" in [entry["drafter"] for entry in document["drafting"]]
    assert document["profile"]["values"]["batch-size"] == 64


def test_a_target_that_cannot_draft_is_tuned_for_plain_decoding(
    specdec: Specdec, model: Model, models: Path, prompts: Path
) -> None:
    ran = specdec("tune", "-m", model("mamba"), "--prompts", prompts, *SHORT, "-b", "64", "--json")
    assert ran.json["drafting"] == []
    assert ran.json["profile"]["values"]["drafter"] == "none"


def test_an_interrupted_one_prints_what_it_has_and_writes_nothing(
    model: Model, models: Path, prompts: Path, watch: Watch
) -> None:
    config().parent.mkdir(parents=True)
    config().write_text("temp = 0.5\n")
    screen = watch(
        "tune", "-m", model("large"), "--prompts", prompts, "-n", "400",
        env={"SPECDEC_THREADS": "1"}, columns=120,
    )  # fmt: skip
    screen.wait_for("mine ·")  # a first answer has begun, so the batch sizes are known
    screen.signal(signal.SIGINT)
    assert screen.end() == 130
    assert "BATCH SIZE" in screen.text
    assert "nothing was written" in screen.text
    assert "[profiles.tuned]" not in screen.text
    assert config().read_text() == "temp = 0.5\n"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--profile-name", "two words"], 2, ["two words"]),
        (["--prompts", "missing.jsonl"], 2, ["missing.jsonl"]),
        (["-n", "3"], 2, ["max-tokens"]),
        (["-m", "missing.gguf"], 3, ["missing.gguf"]),
        (["-md", "missing.gguf"], 3, ["missing.gguf"]),
        (["--raw", "--system", "x"], 2, ["--system"]),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_measured(
    specdec: Specdec, model: Model, models: Path, arguments: list[str], code: int, words: list[str]
) -> None:
    ran = specdec("tune", "-m", model("large"), *arguments).failed(code, *words)
    assert ran.out == ""
    assert not config().exists()


def test_a_configuration_that_cannot_be_changed_is_said_first(
    specdec: Specdec, model: Model, models: Path
) -> None:
    config().parent.mkdir(parents=True)
    config().write_text("[profiles]\ntuned = {threads = 1}\n")
    specdec("tune", "-m", model("large"), *SHORT).failed(2, "tuned", "--profile-name")


def test_a_prompt_that_does_not_fit_is_an_error(
    specdec: Specdec, model: Model, models: Path, tmp_path: Path
) -> None:
    file = tmp_path / "long.jsonl"
    file.write_text(json.dumps({"prompt": "hello " * 500}))
    specdec("tune", "-m", model("large"), "-b", "64", "--prompts", file, *SHORT).failed(8, "-c")
