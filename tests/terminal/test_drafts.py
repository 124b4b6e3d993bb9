"""`specdec draft`: low-bit copies made, listed, used and deleted; `--drafter self` and `auto`."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Ran
from gguf_files import WIDTH, write_tiny
from screen import Screen

from specdec_cli.engine.gguf import read_header

Specdec = Callable[..., Ran]
Model = Callable[[str], Path]
Watch = Callable[..., Screen]
SAMPLING = ("--greedy", "-s", "1")


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty models directory."""
    monkeypatch.setenv("SPECDEC_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


@pytest.fixture
def target(tmp_path: Path, model: Model) -> Path:
    path = tmp_path / "story.gguf"
    shutil.copy(model("story"), path)
    return path


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_copy_is_made_found_and_used(specdec: Specdec, models: Path, target: Path) -> None:
    made = Path(specdec("draft", "make", target).out.strip())
    assert made == models / "story-Q4_0.gguf"
    assert read_header(made).file_type == "Q4_0"
    assert names(models) == [made.name, f"{made.name}.origin.json"]
    document = specdec(
        "run",
        "-m",
        target,
        "--drafter",
        "self",
        "-k",
        "4",
        "-n",
        "20",
        *SAMPLING,
        "--json",
        "hello",
    ).json
    counts = document["speculative_decoding"]
    assert set(counts["by_source"]) == {"self"}
    assert counts["num_accepted_draft_tokens"] > 0
    assert document["draft_model"] == str(made)
    assert document["drafter"] == "self"


def test_the_copy_of_a_draft_drafts_in_its_place(
    specdec: Specdec, models: Path, tmp_path: Path
) -> None:
    models.mkdir()
    words = tuple(f" w{i}" for i in range(9))
    large = write_tiny(tmp_path / "large.gguf", script=words, width=4 * WIDTH)
    small = write_tiny(models / "small.gguf", script=words)
    assert specdec("run", "-m", large, "-k", "2", "--json", "hi").json["draft_model"] == str(small)
    made = specdec("draft", "make", small).out.strip()
    assert specdec("run", "-m", large, "-k", "2", "--json", "hi").json["draft_model"] == made
    named = specdec("run", "-m", large, "-md", small, "-k", "2", "--json", "hi")
    assert named.json["draft_model"] == str(small)


def test_making_it_again_takes_what_is_there(specdec: Specdec, models: Path, target: Path) -> None:
    first = specdec("draft", "make", target, "--low-bit", "q8_0")
    made = Path(first.out.strip())
    os.utime(made, (1, 1))
    again = specdec("draft", "make", target, "--low-bit", "Q8_0", "--json")
    assert again.json == {"path": str(made), "size": made.stat().st_size}
    assert "there already" in again.err
    assert made.stat().st_mtime == 1
    assert specdec("draft", "make", target, "--low-bit", "Q8_0", "--force").code == 0
    assert made.stat().st_mtime > 1


def test_copies_are_listed_with_their_target_and_deleted(
    specdec: Specdec, models: Path, target: Path
) -> None:
    assert "draft make" in specdec("draft", "list").err
    specdec("draft", "make", target)
    (listed,) = specdec("draft", "list", "--json").json
    assert (listed["type"], listed["target"]) == ("Q4_0", "story.gguf")
    row = specdec("draft", "list").out.splitlines()[1].split()
    assert row[0] == "story-Q4_0"
    assert row[-2:] == ["Q4_0", "story.gguf"]
    here = {entry["name"]: entry for entry in specdec("list", "--json").json}
    assert here["story-Q4_0"]["draft_for"] == ["story.gguf"]
    assert here["story-Q4_0"]["self_draft"]
    assert specdec("draft", "rm", "story-Q4_0").code == 0
    assert names(models) == []


def test_only_self_drafts_are_deleted(specdec: Specdec, models: Path, model: Model) -> None:
    models.mkdir()
    shutil.copy(model("story"), models / "story.gguf")
    specdec("draft", "rm", "story").failed(2, "no self draft")
    specdec("draft", "rm", models / "story.gguf").failed(2)
    assert names(models) == ["story.gguf"]


def test_a_copy_that_would_not_be_smaller_is_refused(
    specdec: Specdec, models: Path, target: Path
) -> None:
    made = Path(specdec("draft", "make", target, "--low-bit", "Q8_0").out.strip())
    ran = specdec("draft", "make", made, "--low-bit", "Q8_0").failed(2, "not be smaller", "Q4_0")
    assert ran.out == ""
    assert specdec("draft", "make", made).code == 0
    low = models / "story-Q8_0-Q4_0.gguf"
    specdec("draft", "make", low).failed(2, "not be smaller", "-md")


def test_another_file_of_that_name_is_never_replaced(
    specdec: Specdec, models: Path, target: Path, model: Model
) -> None:
    models.mkdir()
    taken = models / "story-Q4_0.gguf"
    shutil.copy(model("tale"), taken)
    before = taken.read_bytes()
    for arguments in ([], ["--force"]):
        specdec("draft", "make", target, *arguments).failed(2, "another file", "move it away")
    assert taken.read_bytes() == before


def test_the_copy_of_another_model_is_replaced_only_by_force(
    specdec: Specdec, models: Path, target: Path, model: Model
) -> None:
    specdec("draft", "make", target)
    shutil.copy(model("large"), target)
    specdec("draft", "make", target).failed(2, "another file", "--force")
    specdec("run", "-m", target, "--drafter", "self", "hello").failed(2, "no self draft")
    assert specdec("draft", "make", target, "--force").code == 0
    specdec("run", "-m", target, "--drafter", "self", "-n", "4", "hello").err.index("seed")


def test_no_self_draft_is_wrong_usage_with_the_way_to_make_one(
    specdec: Specdec, models: Path, target: Path
) -> None:
    ran = specdec("run", "-m", target, "--drafter", "self", "hello")
    ran.failed(2, "no self draft", f"specdec draft make {target}")


def test_a_full_disk_leaves_nothing_behind(specdec: Specdec, models: Path, target: Path) -> None:
    def files_of_at_most_20_kilobytes() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    ran = specdec("draft", "make", target, preexec_fn=files_of_at_most_20_kilobytes)
    assert ran.code == 3
    assert "could not make story-Q4_0.gguf" in ran.err
    assert ran.out == ""
    assert [name for name in names(models) if not name.endswith(".lock")] == []


def test_a_models_directory_that_cannot_be_is_an_error(specdec: Specdec, target: Path) -> None:
    blocked = target.with_name("blocked")
    blocked.write_text("a file")
    ran = specdec("draft", "make", target, env={"SPECDEC_MODELS": str(blocked / "models")})
    ran.failed(3, "cannot write", "SPECDEC_MODELS")


@pytest.mark.parametrize("content", [None, b"no model at all"])
def test_a_target_that_is_no_model_is_an_error(
    specdec: Specdec, models: Path, tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "broken.gguf"
    if content is not None:
        path.write_bytes(content)
    specdec("draft", "make", path).failed(3, "broken.gguf")
    assert not models.exists()


def test_an_interrupted_copy_leaves_nothing(
    smollm2: Path, tmp_path: Path, models: Path, watch: Watch
) -> None:
    """Of a model large enough to be caught at it: SmolLM2 with wide weights."""
    from specdec_cli.app.make_draft import make

    wide = tmp_path / "wide.gguf"
    make(smollm2, wide, "BF16")
    screen = watch("draft", "make", wide)
    screen.wait_for("wide-Q4_0.gguf")
    screen.signal(signal.SIGINT)
    assert screen.end() == 130
    assert "nothing was made" in screen.text
    assert [name for name in names(models) if not name.endswith(".lock")] == []


def test_auto_says_which_drafts_it_has(specdec: Specdec, models: Path, target: Path) -> None:
    specdec("draft", "make", target)
    shutil.copy(target, models / "other.gguf")  # too large to draft for it by itself
    alone = specdec("run", "-m", target, "-n", "8", "hello")
    assert "guesses from" not in alone.err
    both = specdec("run", "-m", target, "-md", target, "-n", "8", "hello")
    assert "guesses from story (model), story-Q4_0 (self) and the text itself (suffix)" in both.err
    one = specdec("run", "-m", target, "-md", target, "-k", "3", "-n", "8", "--json", "hello").json
    assert one["draft_model"] == str(target)
    assert set(one["speculative_decoding"]["by_source"]) == {"model"}


def test_a_drafter_named_is_the_only_one(specdec: Specdec, models: Path, target: Path) -> None:
    specdec("draft", "make", target)
    ran = specdec("run", "-m", target, "-md", target, "--drafter", "self", "-n", "8", "hello")
    assert "is not loaded" in ran.err
    for kind in ("suffix", "none"):
        document = specdec(
            "run", "-m", target, "--drafter", kind, "-n", "8", "--json", "hello"
        ).json
        assert document["draft_model"] is None


def test_every_text_is_the_plain_one(specdec: Specdec, models: Path, target: Path) -> None:
    specdec("draft", "make", target)
    arguments = ["run", "-m", target, "-n", "60", "-s", "3", "--temp", "1.5", "hello"]
    plain = specdec(*arguments, "--no-draft").out
    for kind in (["--drafter", "self"], ["--drafter", "self", "-k", "5"], []):
        assert specdec(*arguments, *kind).out == plain


def test_a_benchmark_takes_a_self_draft_too(
    specdec: Specdec, models: Path, target: Path, tmp_path: Path
) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"prompt": "hello"}\n')
    arguments = ["bench", "-m", target, "--prompts", prompts, "-n", "8", "-r", "1", "--json"]
    specdec(*arguments, "--drafter", "self").failed(2, "no self draft", "specdec draft make")
    specdec("draft", "make", target)
    rows = specdec(*arguments, "--drafter", "self,auto", "-k", "auto,3").json["results"]
    found = {(row["drafter"], row["k"]) for row in rows}
    assert found == {("self", "auto"), ("self", 3), ("auto", "auto")}
    only = specdec(*arguments, "--drafter", "suffix", "-k", "3").json
    assert {row["drafter"] for row in only["results"]} == {"suffix"}


def test_a_draft_known_not_to_pay_is_not_loaded_and_the_document_says_so(
    specdec: Specdec, models: Path, target: Path, model: Model
) -> None:
    """Two models of one size: the draft's passes cost what the target's do."""
    arguments = ["run", "-m", target, "-md", model("draft"), "-n", "60", *SAMPLING]
    assert "is not loaded" not in specdec(*arguments, "hello").err
    (record,) = (Path.home() / ".cache/specdec/experience").glob("*.json")
    known = json.loads(record.read_text())
    known["verify"] = {"1": 0.01, "2": 0.02, "8": 0.08}
    known["drafts"] = {key: {"1": 0.01, "8": 0.08} for key in known["drafts"]}
    assert known["drafts"]
    record.write_text(json.dumps(known))
    ran = specdec(*arguments, "--json", "hello")
    assert ran.json["draft_model"] is None
    assert "the draft draft is not loaded" in ran.json["speculative_decoding"]["decision"]
    assert "would not pay here" in ran.err
    asked = specdec(*arguments, "--drafter", "model", "--json", "hello")
    assert asked.json["draft_model"] == str(model("draft"))


@pytest.mark.parametrize(
    ("damage", "words"),
    [(b"{", "damaged"), (b'{"version": 99}', "another version"), (b"[" * 100_000, "damaged")],
    ids=["half", "version", "deep"],
)  # fmt: skip
def test_a_record_that_cannot_be_used_is_measured_again_with_one_notice(
    specdec: Specdec, target: Path, models: Path, damage: bytes, words: str
) -> None:
    arguments = ["run", "-m", target, "-n", "60", *SAMPLING, "hello"]
    plain = specdec(*arguments).out
    (record,) = (Path.home() / ".cache/specdec/experience").glob("*.json")
    record.write_bytes(damage)
    ran = specdec(*arguments)
    assert ran.out == plain
    notices = [line for line in ran.err.splitlines() if line.startswith("note: ")]
    assert len(notices) == 1
    assert words in notices[0]
    assert "note: " not in specdec(*arguments).err


def test_a_cache_that_cannot_be_written_costs_one_notice(
    specdec: Specdec, target: Path, models: Path
) -> None:
    cache = Path.home() / ".cache/specdec"
    cache.mkdir(parents=True)
    (cache / "experience").write_text("a file where the directory should be")
    ran = specdec("run", "-m", target, "-n", "60", *SAMPLING, "hello")
    assert ran.code == 0
    assert ran.err.count("note: ") == 1
    assert "measured each time" in ran.err


def test_the_final_line_has_the_ratio_to_plain(
    specdec: Specdec, target: Path, models: Path, model: Model
) -> None:
    """A made-up cost of a plain pass, so long that guessing always pays."""
    arguments = ["run", "-m", target, "-md", model("draft"), "-n", "60", *SAMPLING]
    specdec(*arguments, "hello")
    (record,) = (Path.home() / ".cache/specdec/experience").glob("*.json")
    known = json.loads(record.read_text())
    known["verify"] = {"1": 1.0, "32": 1.0}
    known["drafts"] = {key: {"1": 1e-6, "32": 1e-6} for key in known["drafts"]}
    record.write_text(json.dumps(known))
    ran = specdec(*arguments, "hello")
    assert "drafts accepted" in ran.err
    assert "x plain · first token" in ran.err
    assert "tok/s, ≈" in ran.err
