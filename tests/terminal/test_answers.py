"""`specdec run`: what is on stdout, and what on stderr."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command import Ran

Specdec = Callable[..., Ran]
Model = Callable[[str], Path]


def words(count: int, start: int = 0) -> str:
    return "".join(f" w{i}" for i in range(start, start + count))


def test_stdout_holds_the_answer_and_nothing_else(specdec: Specdec, model: Model) -> None:
    ran = specdec("run", "-m", model("tale"), "hello")
    assert (ran.out, ran.code) == (words(12) + "\n", 0)
    assert "seed" in ran.err
    assert "\x1b" not in ran.out + ran.err


def test_quiet_leaves_stderr_empty(specdec: Specdec, model: Model) -> None:
    for ran in (
        specdec("run", "-q", "-m", model("tale"), "hello"),
        specdec("-q", "run", "-m", model("tale"), "hello"),
    ):
        assert (ran.out, ran.err) == (words(12) + "\n", "")


def test_the_final_line_counts_drafts_and_names_the_seed(specdec: Specdec, model: Model) -> None:
    ran = specdec(
        "run", "-m", model("story"), "-md", model("draft"), "-k", 4, "-n", 20, "-s", 5, "hello"
    )
    assert "drafts accepted" in ran.err
    assert "tokens per pass" in ran.err
    assert ran.err.rstrip().endswith("seed 5")


def test_an_answer_of_no_tokens_is_empty(specdec: Specdec, model: Model) -> None:
    ran = specdec("run", "-m", model("story"), "-n", "0", "hello")
    assert (ran.out, ran.code) == ("", 0)
    document = specdec("run", "-m", model("story"), "-n", "0", "--json", "hello").json
    assert (document["tokens"], document["finish_reason"]) == ([], "length")


@pytest.mark.parametrize("count", [1, 2, 5, 6, 7, 17])
def test_an_answer_has_exactly_as_many_tokens_as_it_may(
    specdec: Specdec, model: Model, count: int
) -> None:
    pair = ["-m", model("story"), "-md", model("draft"), "-k", 4]
    ran = specdec("run", *pair, "-n", count, "hello")
    assert ran.out == words(count) + "\n"


@pytest.mark.parametrize("draft", ["draft", None])
def test_a_stop_text_and_what_follows_it_is_not_shown(
    specdec: Specdec, model: Model, draft: str | None
) -> None:
    drafting = ["-md", model(draft), "-k", 4] if draft else ["--no-draft"]
    arguments = ["run", "-m", model("story"), *drafting, "--stop", "w11 w1", "--stop", "nope"]
    assert specdec(*arguments, "hello").out == words(11) + " \n"
    document = specdec(*arguments, "--json", "hello").json
    assert (document["stop"], document["finish_reason"]) == ("w11 w1", "stop")
    assert document["text"] == words(11) + " "


def test_ignore_eos_goes_on_past_the_end(specdec: Specdec, model: Model) -> None:
    ran = specdec("run", "-m", model("tale"), "--ignore-eos", "-n", "40", "--json", "hello")
    assert (ran.json["finish_reason"], len(ran.json["tokens"])) == ("length", 40)
    assert 2 not in ran.json["tokens"]


def test_an_end_token_is_counted_but_not_shown(specdec: Specdec, model: Model) -> None:
    document = specdec("run", "-m", model("tale"), "--json", "hello").json
    assert document["finish_reason"] == "stop"
    assert document["stop"] is None
    assert document["tokens"][-1] == 2
    assert len(document["tokens"]) == 13 == document["usage"]["completion_tokens"]
    assert document["text"] == words(12)


def test_a_full_context_ends_the_answer_without_an_error(specdec: Specdec, model: Model) -> None:
    ran = specdec("run", "-m", model("story"), "-md", model("draft"), "-c", "64", "--json", "hi")
    document = ran.json
    assert document["finish_reason"] == "context"
    assert document["usage"]["total_tokens"] == 64
    assert (
        document["text"]
        == specdec("run", "-m", model("story"), "--no-draft", "-c", "64", "--json", "hi").json[
            "text"
        ]
    )


def test_extract_prints_the_first_code_block_alone(specdec: Specdec, model: Model) -> None:
    ran = specdec("run", "-x", "-m", model("code"), "hello")
    assert ran.out == "print(1)\n"


def test_extract_of_an_answer_without_code_is_the_answer(specdec: Specdec, model: Model) -> None:
    assert specdec("run", "-x", "-m", model("tale"), "hello").out == words(12) + "\n"


def test_text_is_never_read_as_markup(specdec: Specdec, model: Model) -> None:
    expected = "[bold][/bold]:smile:[red]x\\["
    assert specdec("run", "-m", model("markup"), "[bold]hi[/bold]").out == expected + "\n"


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        (["the cat"], None),
        (["-p", "the cat"], None),
        (["--prompt", "the cat"], None),
        ([], "the cat"),
        ([], "the cat\n"),
        (["-"], "the cat"),
        (["-p", "-"], "the cat"),
        (["-f", "cat.txt"], None),
        (["-f", "-"], "the cat"),
    ],
    ids=str,
)
def test_a_prompt_is_the_same_wherever_it_comes_from(
    specdec: Specdec, model: Model, arguments: list[str], given: str | None
) -> None:
    Path("cat.txt").write_text("the cat\n")
    document = specdec(
        "run", "-m", model("random"), "-n", "8", "-s", "1", "--json", *arguments, input=given
    ).json
    assert document["usage"]["prompt_tokens"] == prompt_tokens(specdec, model, "the cat")


def prompt_tokens(specdec: Specdec, model: Model, text: str) -> int:
    ran = specdec("run", "-m", model("random"), "-n", "0", "--json", text)
    return int(ran.json["usage"]["prompt_tokens"])


def test_standard_input_comes_before_the_file_and_the_argument(
    specdec: Specdec, model: Model
) -> None:
    Path("middle.txt").write_text("in the\n")
    arguments = ["run", "-m", model("random"), "-n", "12", "-s", "3", "--json"]
    joined = specdec(*arguments, "-f", "middle.txt", "end", input="first\n").json
    assert joined["tokens"] == specdec(*arguments, "first\n\nin the\n\nend").json["tokens"]
    other = specdec(*arguments, "end\n\nin the\n\nfirst").json["tokens"]
    assert joined["tokens"] != other


def test_plain_and_drafted_answers_have_the_same_tokens(specdec: Specdec, smollm2: Path) -> None:
    for sampling in (["--greedy"], ["--temp", "0.8", "-s", "11"]):
        arguments = ["run", "-m", smollm2, "-n", "24", "--json", *sampling, "Name three fruits."]
        plain = specdec(*arguments, "--no-draft").json
        drafted = specdec(*arguments, "-md", smollm2, "--drafter", "model", "-k", 4).json
        assert drafted["tokens"] == plain["tokens"]
        assert drafted["speculative_decoding"]["num_accepted_draft_tokens"] > 10
        assert plain["speculative_decoding"]["num_draft_tokens"] == 0


def test_a_seed_repeats_its_answer_and_another_does_not(specdec: Specdec, model: Model) -> None:
    arguments = ["run", "-m", model("random"), "-n", "24", "--temp", "1.5", "--json", "hello"]
    first, again, other = (specdec(*arguments, "-s", s).json for s in (7, 7, 8))
    assert first["tokens"] == again["tokens"] != other["tokens"]


def test_a_drawn_seed_is_reported_and_gives_the_answer_again(
    specdec: Specdec, model: Model
) -> None:
    arguments = ["run", "-m", model("random"), "-n", "24", "--temp", "1.5", "hello"]
    first = specdec(*arguments)
    seed = first.err.rsplit("seed ", 1)[1].strip()
    assert specdec(*arguments, "--seed", seed).out == first.out
    assert specdec(*arguments).err.rsplit("seed ", 1)[1].strip() != seed


def test_a_recurrent_target_answers_without_a_draft_and_says_so(
    specdec: Specdec, model: Model
) -> None:
    ran = specdec("run", "-m", model("mamba"), "-md", model("draft"), "-n", "20", "hello")
    assert ran.out == words(20) + "\n"
    assert "cannot take back" in ran.err


def test_a_recurrent_draft_still_gives_the_targets_answer(specdec: Specdec, model: Model) -> None:
    pair = ["-m", model("story"), "-md", model("mamba"), "-k", 4]
    ran = specdec("run", *pair, "-n", "20", "hello")
    assert ran.out == words(20) + "\n"


def test_compare_says_which_was_faster_and_that_the_text_is_the_same(
    specdec: Specdec, model: Model
) -> None:
    pair = ["-m", model("story"), "-md", model("draft"), "-k", 4]
    ran = specdec("run", *pair, "-n", "20", "--greedy", "--compare", "hello")
    assert ran.out == words(20) + "\n"
    assert "same text" in ran.err
