"""`run --json` and `run --jsonl`: the documents that scripts rely on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Ran

Specdec = Callable[..., Ran]
Model = Callable[[str], Path]

TOP = {
    "model", "draft_model", "drafter", "text", "tokens", "finish_reason", "stop", "usage",
    "timings", "speculative_decoding", "params", "versions",
}  # fmt: skip
USAGE = {"prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens"}
TIMINGS = {
    "load_ms", "prompt_n", "prompt_ms", "prompt_per_second", "predicted_n", "predicted_ms",
    "predicted_per_second", "time_to_first_token_ms", "draft_ms", "target_ms", "other_ms",
    "draft_n", "draft_n_accepted",
}  # fmt: skip
SPECULATION = {
    "mean_acceptance_length", "draft_acceptance_rate", "acceptance_histogram", "num_spec_steps",
    "num_drafts", "num_draft_tokens", "num_accepted_draft_tokens", "by_source", "decision",
    "predicted_speedup",
}  # fmt: skip
PARAMS = {
    "temp", "top_k", "top_p", "min_p", "repeat_penalty", "presence_penalty", "frequency_penalty",
    "penalty_last_n", "logit_bias", "seed", "accept", "draft_tokens", "max_tokens", "stop",
    "ignore_eos", "ctx_size", "batch_size", "threads",
}  # fmt: skip
CASES: dict[str, list[object]] = {
    "drafted": ["-md", "draft", "-k", 4, "-n", 40],
    "as many as pay": ["-md", "draft", "-n", 120],
    "one guess": ["-md", "draft", "-k", 1, "-n", 17],
    "many guesses": ["-md", "draft", "-k", 16, "-n", 60],
    "plain": ["--no-draft", "-n", 9],
    "no guesses": ["-md", "draft", "-k", 0, "-n", 9],
    "nothing": ["-md", "draft", "-n", 0],
    "one token": ["-md", "draft", "-n", 1],
    "stop in a round": ["-md", "draft", "-k", 4, "--stop", "w12", "-n", 60],
    "full context": ["-md", "draft", "-k", 4, "-c", 64],
    "a useless draft": ["-md", "random-draft", "-k", 4, "-n", 20],
    "its own draft": ["-md", "story", "-k", 4, "-n", 33, "--temp", 2],
}


def run_case(specdec: Specdec, model: Model, name: str, output: str = "--json") -> Ran:
    arguments = [
        model(str(a)) if before == "-md" else a
        for before, a in zip([None, *CASES[name]], CASES[name], strict=False)
    ]
    target = "tiny" if name == "a useless draft" else "story"
    target = "random" if target == "tiny" else target
    return specdec("run", "-m", model(target), "-s", 1, output, *arguments, "hello")


def check(document: dict[str, Any]) -> None:
    """The identities of the contract."""
    usage, timings = document["usage"], document["timings"]
    speculation = document["speculative_decoding"]
    histogram, passes = speculation["acceptance_histogram"], speculation["num_spec_steps"]
    drafted, accepted = (
        speculation["num_draft_tokens"],
        speculation["num_accepted_draft_tokens"],
    )
    assert sum(histogram) == passes
    assert sum(i * count for i, count in enumerate(histogram)) == accepted
    assert accepted <= drafted
    assert speculation["num_drafts"] <= passes
    cut = accepted + passes - usage["completion_tokens"]  # an end in a round takes its last token
    assert cut in (0, 1)
    if cut:
        assert document["finish_reason"] == "stop"
    assert usage["completion_tokens"] == len(document["tokens"]) == timings["predicted_n"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert (timings["draft_n"], timings["draft_n_accepted"]) == (drafted, accepted)
    parts = timings["draft_ms"] + timings["target_ms"] + timings["other_ms"]
    assert parts == pytest.approx(timings["predicted_ms"])
    sources = speculation["by_source"].values()
    assert sum(source["drafted"] for source in sources) == drafted
    assert sum(source["accepted"] for source in sources) == accepted
    if drafted:
        assert speculation["draft_acceptance_rate"] == pytest.approx(accepted / drafted)
        mean = 1 + accepted / speculation["num_drafts"]
        assert speculation["mean_acceptance_length"] == pytest.approx(mean)
    else:
        assert speculation["draft_acceptance_rate"] is None
        assert speculation["mean_acceptance_length"] is None


@pytest.mark.parametrize("name", CASES)
def test_the_numbers_of_an_answer_agree_with_each_other(
    specdec: Specdec, model: Model, name: str
) -> None:
    check(run_case(specdec, model, name).json)


def test_the_numbers_of_a_real_answer_agree_with_each_other(
    specdec: Specdec, smollm2: Path
) -> None:
    ran = specdec("run", "-m", smollm2, "-md", smollm2, "-n", 24, "--json", "Name a fruit.")
    check(ran.json)


def test_the_document_has_the_keys_of_the_contract(specdec: Specdec, model: Model) -> None:
    for name in ("drafted", "plain"):
        document = run_case(specdec, model, name).json
        assert set(document) == TOP
        assert set(document["usage"]) == USAGE
        assert set(document["timings"]) == TIMINGS
        assert set(document["speculative_decoding"]) == SPECULATION
        assert set(document["params"]) >= PARAMS
        assert set(document["versions"]) == {"specdec", "llama_cpp_python", "llama_cpp"}


def test_the_document_names_what_was_effective(specdec: Specdec, model: Model) -> None:
    document = specdec(
        "run", "-m", model("story"), "-md", model("draft"), "-k", 3, "-s", 9, "-n", 5, "--temp",
        0.5, "--logit-bias", "7=-inf", "--logit-bias", "8=1.5", "--stop", "zz", "--json", "hello",
    ).json  # fmt: skip
    assert document["model"] == str(model("story"))
    assert document["draft_model"] == str(model("draft"))
    expected = {
        "draft_tokens": 3, "seed": 9, "max_tokens": 5, "temp": 0.5, "stop": ["zz"],
        "logit_bias": {"7": "-inf", "8": 1.5}, "accept": "coupled", "top_k": 40,
    }  # fmt: skip
    assert {key: document["params"][key] for key in expected} == expected


def test_a_plain_run_says_why_nothing_was_drafted(specdec: Specdec, model: Model) -> None:
    for name, why in (("plain", "--no-draft"), ("no guesses", "-k 0")):
        assert why in run_case(specdec, model, name).json["speculative_decoding"]["decision"]


@pytest.mark.parametrize("name", ["drafted", "plain", "stop in a round", "nothing"])
def test_a_stream_of_events_tells_the_same_as_the_document(
    specdec: Specdec, model: Model, name: str
) -> None:
    *tokens, done = run_case(specdec, model, name, "--jsonl").lines
    assert done.pop("type") == "done"
    check(done)
    assert {event["type"] for event in tokens} <= {"token"}
    assert all(set(event) == {"type", "id", "text", "source"} for event in tokens)
    assert [event["id"] for event in tokens] == done["tokens"]
    assert "".join(event["text"] for event in tokens) == done["text"]
    sources = [event["source"] for event in tokens]
    assert set(sources) <= {"target", "model", "self", "suffix"}
    accepted = done["speculative_decoding"]["num_accepted_draft_tokens"]
    assert len(sources) - sources.count("target") == accepted
    document = run_case(specdec, model, name).json
    assert (document["tokens"], document["text"]) == (done["tokens"], done["text"])


def test_text_outside_ascii_stands_in_the_document_as_it_is(specdec: Specdec, model: Model) -> None:
    ran = specdec("run", "-m", model("characters"), "-n", 20, "--json", "hello")
    assert ran.json["text"].startswith("aé你🙂 ba")
    assert "🙂" in ran.out


def test_nothing_but_the_document_is_printed_to_either_stream_when_quiet(
    specdec: Specdec, model: Model
) -> None:
    ran = specdec("run", "-m", model("tale"), "--json", "--quiet", "hello")
    assert ran.err == ""
    assert len(ran.out.splitlines()) == 1


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("option", [["--json"], ["--quiet"], ["--color", "never"], ["--offline"]])
def test_global_options_stand_before_or_after_the_command(
    specdec: Specdec, model: Model, where: str, option: list[str]
) -> None:
    rest = ["-m", model("tale"), "-n", "3", "hello"]
    arguments = [*option, "run", *rest] if where == "before" else ["run", *option, *rest]
    ran = specdec(*arguments)
    assert ran.code == 0
    assert ran.out.startswith("{") is (option == ["--json"])
    assert option != ["--quiet"] or ran.err == ""


@pytest.mark.parametrize(
    "pair", [["--json", "--jsonl"], ["--json", "-x"], ["--jsonl", "--extract"]], ids=str
)
def test_two_forms_of_output_do_not_go_together(
    specdec: Specdec, model: Model, pair: list[str]
) -> None:
    specdec("run", "-m", model("tale"), *pair, "hello").failed(2, "do not go together")
