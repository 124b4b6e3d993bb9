"""`specdec verify` from the outside: the report, the document, the exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Ran, fails
from screen import Screen

Specdec = Callable[..., Ran]
Model = Callable[[str], Path]
Watch = Callable[..., Screen]

KEYS = {"verdict", "rules", "runs", "frequencies", "exact"}
RUN = {"prompt", "accept", "temp", "seed", "k", "drafter", "verdict", "first_difference"}


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    file = tmp_path / "prompts.jsonl"
    file.write_text('{"prompt": "one"}\n\n{"prompt": "two", "category": "chat", "system": "x"}\n')
    return file


def test_a_sound_pair_gets_its_receipt(specdec: Specdec, model: Model, prompts: Path) -> None:
    pair = ["-m", model("random"), "-md", model("random-draft"), "--prompts", prompts, "-n", 16]
    ran = specdec("verify", *pair, "-k", 3)
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[-1].startswith("identical: ")
    assert "rule block: exact" in ran.out
    found = specdec("verify", *pair, "-k", 3, "--temp", "0.9", "--seeds", 1, "--json").json
    assert set(found) == KEYS
    assert found["verdict"] == "identical"
    assert all(set(run) >= RUN for run in found["runs"])
    assert {run["temp"] for run in found["runs"]} == {0.0, 0.9}
    assert all(rule["total_variation"] <= 1e-12 for rule in found["rules"].values())
    assert found["exact"] is None


def test_the_suffix_drafter_is_verified_as_well(
    specdec: Specdec, model: Model, prompts: Path
) -> None:
    found = specdec(
        "verify", "-m", model("story"), "--drafter", "suffix", "--prompts", prompts, "--json"
    ).json
    assert found["verdict"] == "identical"
    assert {run["drafter"] for run in found["runs"]} == {"suffix"}
    assert sum(run["accepted"] for run in found["runs"]) > 0


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["not json"], ("line 1", "not JSON")),
        ([json.dumps({"prompt": "fine"}), "{}"], ("line 2", "no prompt")),
        ([json.dumps({"prompt": "x", "category": 3})], ("line 1", "not a text")),
        ([], ("no prompts",)),
    ],
)
def test_a_bad_prompt_file_names_the_line(
    model: Model, tmp_path: Path, lines: list[str], words: tuple[str, ...]
) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text("\n".join(lines))
    fails(2, "usage", "verify", "-m", model("random"), "--prompts", file, words=words)


def test_plain_decoding_leaves_nothing_to_verify(model: Model) -> None:
    fails(2, "usage", "verify", "-m", model("random"), "--no-draft", words=("--no-draft",))


def test_a_prompt_that_does_not_fit_is_said(model: Model, tmp_path: Path) -> None:
    file = tmp_path / "long.jsonl"
    file.write_text(json.dumps({"prompt": "word " * 400}))
    arguments = ["-m", model("random"), "-md", model("random-draft"), "-c", 64]
    fails(8, "prompt_too_long", "verify", *arguments, "--prompts", file, words=("context 64",))


def test_ctrl_c_ends_a_verification(model: Model, watch: Watch) -> None:
    pair = ["-m", model("story"), "-md", model("draft")]
    screen = watch("verify", *pair, "-n", 4000, "-c", 8000)
    screen.wait_for("rule block: exact")
    screen.interrupt()
    assert screen.end() == 130
    assert "Traceback" not in screen.text
