"""`--expect` and `--memory`: guesses from texts that are not in the prompt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Ran

Specdec = Callable[..., Ran]
Model = Callable[[str], Path]

ANSWER = "aé你🙂 b"  # of the model `characters`, 11 tokens, over and over
EXPECTED = Path("expected.txt")


def answered(specdec: Specdec, model: Model, *arguments: object) -> dict[str, Any]:
    """Nine tokens: too few for the answer to repeat itself."""
    ran = specdec(
        "run", "-m", model("characters"), "-n", "9", "--greedy", "-s", "1", "--drafter", "suffix",
        "-k", "4", "--json", *arguments, "hello",
    )  # fmt: skip
    document: dict[str, Any] = ran.json
    return document


def accepted(document: dict[str, Any]) -> int:
    return int(document["speculative_decoding"]["num_accepted_draft_tokens"])


def test_an_expected_text_is_guessed_from(specdec: Specdec, model: Model) -> None:
    EXPECTED.write_text(f"something else\n{ANSWER}", encoding="utf-8")
    without = answered(specdec, model)
    with_it = answered(specdec, model, "--expect", EXPECTED)
    assert accepted(without) == 0
    assert accepted(with_it) >= 4
    assert with_it["tokens"] == without["tokens"]


def test_a_wrong_expectation_changes_no_text(specdec: Specdec, model: Model) -> None:
    plain = answered(specdec, model, "--no-draft")
    EXPECTED.write_text("aéx" * 9, encoding="utf-8")
    wrong = answered(specdec, model, "--expect", EXPECTED)
    assert wrong["tokens"] == plain["tokens"]
    assert wrong["speculative_decoding"]["num_draft_tokens"] > accepted(wrong)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["empty"]),
        (b" \n\t\n", ["empty"]),
        (b"\x89PNG\r\n\x1a\n\x00\xff", ["not UTF-8", "0x89"]),
        ("text".encode("utf-16"), ["not UTF-8"]),
        (b"a" * ((1 << 20) + 1), ["too long", "1 MiB"]),
        (None, ["No such file"]),
    ],
    ids=["empty", "blank", "binary", "utf-16", "long", "missing"],
)
def test_what_nobody_can_expect_is_wrong_usage(
    specdec: Specdec, content: bytes | None, words: list[str]
) -> None:
    if content is not None:
        EXPECTED.write_bytes(content)
    ran = specdec("run", "-m", "not-even-looked-for.gguf", "--expect", EXPECTED, "hello")
    assert ran.failed(2, "expected.txt", *words).out == ""


@pytest.mark.parametrize("file", ["/dev/zero", "."])
def test_no_file_to_read_to_its_end_is_wrong_usage(specdec: Specdec, file: str) -> None:
    specdec("run", "-m", "x.gguf", "--expect", file, "hello").failed(2, "expected text")


def test_a_text_of_the_largest_size_is_taken(specdec: Specdec, model: Model) -> None:
    EXPECTED.write_bytes((ANSWER * 100_000).encode()[: 1 << 20].rsplit(b"b", 1)[0])
    assert accepted(answered(specdec, model, "--expect", EXPECTED)) >= 4


@pytest.mark.parametrize(
    "arguments",
    [["--drafter", "model", "-k", "2"], ["--no-draft"], ["-k", "0"], ["--drafter", "none"]],
)
def test_an_expectation_that_nothing_uses_is_said(
    specdec: Specdec, model: Model, arguments: list[str]
) -> None:
    EXPECTED.write_text("anything")
    ran = specdec(
        "run", "-m", model("tale"), "-md", model("draft"), *arguments, "--expect", EXPECTED, "hi"
    )
    assert ran.code == 0
    assert "--expect is not used" in ran.err


def test_auto_uses_it_without_a_word(specdec: Specdec, model: Model) -> None:
    EXPECTED.write_text("anything")
    ran = specdec("run", "-m", model("tale"), "--expect", EXPECTED, "hello")
    assert ran.code == 0
    assert "--expect" not in ran.err


def test_a_memory_is_kept_only_where_it_is_asked_for(specdec: Specdec, model: Model) -> None:
    answered(specdec, model)
    assert specdec("memory", "show", "--json").json == []
    assert accepted(answered(specdec, model, "--memory")) == 0
    (kept,) = specdec("memory", "show", "--json").json
    assert (kept["answers"], kept["tokens"]) == (1, 9)
    assert accepted(answered(specdec, model)) == 0
    assert accepted(answered(specdec, model, "--memory")) >= 4
    assert specdec("memory", "show").out.startswith("1 answer, 9 tokens")


def test_a_memory_may_be_configured_and_deleted(specdec: Specdec, model: Model) -> None:
    Path("specdec.toml").write_text("memory = true\n")
    answered(specdec, model)
    assert specdec("memory", "clear", "--json").json == {"deleted": 1}
    assert "nothing is kept" in specdec("memory", "show").out
    assert "nothing to delete" in specdec("memory", "clear").err


def test_a_damaged_memory_is_one_notice_and_no_error(specdec: Specdec, model: Model) -> None:
    answered(specdec, model, "--memory")
    (kept,) = specdec("memory", "show", "--json").json
    Path(kept["path"]).write_text("{")
    arguments = ["run", "-m", model("characters"), "--memory", "-n", "9", "hello"]
    ran = specdec(*arguments)
    assert ran.code == 0
    assert ran.err.count("note: ") == 1
    assert "damaged" in ran.err
    assert "note: " not in specdec(*arguments).err


def test_a_memory_without_a_place_is_one_notice(specdec: Specdec, model: Model) -> None:
    data = Path.home() / ".local/share"
    data.mkdir(parents=True)
    (data / "specdec").write_text("a file where a directory should be")
    ran = specdec("run", "-m", model("characters"), "--memory", "-n", "9", "hello")
    assert ran.code == 0
    assert ran.err.count("note: ") == 1
    assert "cannot be written" in ran.err or "cannot be read" in ran.err
