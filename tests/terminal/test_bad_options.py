"""Options that mean nothing: wrong usage, exit 2, before any model is loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command import Ran, fails, parse

Specdec = Callable[..., Ran]
Model = Callable[[str], Path]

OPTIONS: list[tuple[list[object], list[str]]] = [
    (["-k", "-1"], ["draft-tokens"]),
    (["-k", "1000"], ["64"]),
    (["-k", "abc"], ["abc"]),
    (["-c", "0"], ["ctx-size"]),
    (["-c", "many"], ["many"]),
    (["-c", "-5"], ["ctx-size"]),
    (["-b", "0"], ["batch-size"]),
    (["-t", "0"], ["threads"]),
    (["-n", "-2"], ["max-tokens"]),
    (["-n", "1.5"], ["max-tokens"]),
    (["-ngl", "some"], ["gpu-layers"]),
    (["--temp", "-0.1"], ["--temp", "-0.1"]),
    (["--temp", "nan"], ["--temp"]),
    (["--temp", "inf"], ["--temp"]),
    (["--top-p", "0"], ["--top-p"]),
    (["--top-p", "2"], ["--top-p"]),
    (["--min-p", "1.5"], ["--min-p"]),
    (["--min-p", "-0.1"], ["--min-p"]),
    (["--top-k", "-1"], ["--top-k"]),
    (["--repeat-penalty", "0"], ["--repeat-penalty"]),
    (["--presence-penalty", "nan"], ["--presence-penalty"]),
    (["--penalty-last-n", "-2"], ["--penalty-last-n"]),
    (["--logit-bias", "5=nan"], ["--logit-bias"]),
    (["--logit-bias", "5=inf"], ["--logit-bias"]),
    (["--logit-bias", "5"], ["--logit-bias"]),
    (["--logit-bias", "x=1"], ["--logit-bias"]),
    (["--logit-bias", "-1=1"], ["--logit-bias"]),
    (["--logit-bias", "100000=1"], ["--logit-bias", "100000"]),
    (["--seed", str(2**64)], ["--seed"]),
    (["--seed", "-2"], ["--seed"]),
    (["--accept", "greedy"], ["greedy", "coupled"]),
    (["--drafter", "magic"], ["magic"]),
    (["--nonsense"], ["--nonsense"]),
    (["--draft-token", "3"], ["--draft-token"]),
    (["more", "words"], ["words"]),
    (["--raw", "--system", "be brief"], ["--system"]),
    (["-p", "twice"], ["twice"]),
    (["-f", "missing.txt"], ["missing.txt"]),
]


@pytest.mark.parametrize(
    ("arguments", "words"), OPTIONS, ids=lambda value: " ".join(map(str, value))
)
def test_a_bad_option_is_wrong_usage(
    specdec: Specdec, model: Model, arguments: list[str], words: list[str]
) -> None:
    ran = specdec("run", "-m", model("tale"), *arguments, "hello").failed(2, *words)
    assert ran.out == ""


def test_wrong_usage_is_a_document_too(specdec: Specdec, model: Model) -> None:
    fails(2, "usage", "run", "-m", model("tale"), "-k", "1000", "hello")
    fails(2, "usage", "run", "-m", model("tale"), "--temp", "-1", "hello")
    fails(2, "usage", "rnu", "hello", words=("rnu",))


def test_json_that_was_configured_holds_for_errors_too(specdec: Specdec) -> None:
    ran = specdec("run", "-m", "nowhere.gguf", "hello", env={"SPECDEC_JSON": "1"})
    assert parse(ran.out)["error"]["code"] == 3


@pytest.mark.parametrize(("given", "arguments"), [("", []), ("\n \n", []), (None, [""])], ids=repr)
def test_an_empty_prompt_is_wrong_usage(
    specdec: Specdec, model: Model, given: str | None, arguments: list[str]
) -> None:
    ran = specdec("run", "-m", model("tale"), *arguments, input=given).failed(2, "empty")
    assert ran.out == ""
