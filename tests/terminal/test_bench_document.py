"""The document of `specdec bench`: its figures follow from its runs, and these add up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import pytest
from benching import PROMPTS, Bench, bench_of
from test_json import check

Model = Callable[[str], Path]
Document = dict[str, Any]

SWEEP = ["--drafter", "model,suffix,none", "-k", "1-3+2", "--accept", "coupled,block"]
done: dict[str, Document] = {}


@pytest.fixture
def bench(model: Model) -> Bench:
    return bench_of(model("story"), model("draft"))


@pytest.fixture
def sweep(bench: Bench, model: Model) -> Document:
    """Two drafts and the suffix drafter, two lengths, two rules, three prompts, twice."""
    if "sweep" not in done:
        ran = bench("-md", model("renamed"), *SWEEP, "-n", 60, "-r", 2, "--json")
        done["sweep"] = ran.json
    return done["sweep"]


def key(entry: Mapping[str, Any]) -> tuple[str, int | str, str]:
    return entry["drafter"], entry["k"], entry["accept"]


def pairs(document: Document, result: Mapping[str, Any]) -> Iterator[list[tuple[Any, Any]]]:
    """For each prompt of a result, its plain and speculative runs by repetition."""
    order = [key(entry) for entry in document["summary"]["candidates"]]
    runs = {(run["prompt"], run["repetition"], run["candidate"]): run for run in document["runs"]}
    for prompt, entry in enumerate(PROMPTS):
        if entry["category"] == result["category"]:
            yield [
                (runs[prompt, times, None], runs[prompt, times, order.index(key(result))])
                for times in range(document["conditions"]["repetitions"])
            ]


def tps(run: Mapping[str, Any]) -> float:
    seconds = (run["timings"]["prompt_ms"] + run["timings"]["predicted_ms"]) / 1e3
    return float(run["usage"]["completion_tokens"] / seconds)


def test_every_candidate_of_a_sweep_is_there(sweep: Document) -> None:
    wanted = set(product(("draft", "renamed", "suffix"), (1, 3), ("coupled", "block")))
    assert {key(entry) for entry in sweep["summary"]["candidates"]} == wanted
    for category in ("chat", "code"):
        found = [key(row) for row in sweep["results"] if row["category"] == category]
        assert len(found) == len(wanted)
        assert set(found) == wanted
    assert len(sweep["runs"]) == len(PROMPTS) * 2 * (1 + len(wanted))
    assert sweep["complete"]
    assert sweep["skipped"] == []


def test_the_numbers_of_every_run_agree_with_each_other(sweep: Document) -> None:
    for run in sweep["runs"]:
        check(run)
        assert run["usage"]["cached_tokens"] == 0
        assert run["usage"]["completion_tokens"] == 60
        if run["candidate"] is None:
            assert run["speculative_decoding"]["num_drafts"] == 0


def test_the_figures_follow_from_the_runs(sweep: Document) -> None:
    for row in sweep["results"]:
        by_prompt = list(pairs(sweep, row))
        flat = [pair for runs in by_prompt for pair in runs]
        assert (row["prompts"], row["pairs"]) == (len(by_prompt), len(flat))
        ratios = [
            median(tps(drafted) / tps(plain) for plain, drafted in runs) for runs in by_prompt
        ]
        assert row["speedup"] == pytest.approx(geometric_mean(ratios))
        low, high = row["speedup_ci"]
        assert low <= row["speedup"] <= high
        medians = [median(tps(drafted) for _, drafted in runs) for runs in by_prompt]
        assert row["tps"] == pytest.approx(geometric_mean(medians))
        for name in ("draft_ms", "target_ms", "other_ms"):
            mean = sum(drafted["timings"][name] for _, drafted in flat) / len(flat)
            assert row[name] == pytest.approx(mean)
        check_acceptance(row, [drafted["speculative_decoding"] for _, drafted in flat])


def check_acceptance(row: Mapping[str, Any], parts: list[Mapping[str, Any]]) -> None:
    drafts = sum(part["num_drafts"] for part in parts)
    accepted = sum(part["num_accepted_draft_tokens"] for part in parts)
    drafted = sum(part["num_draft_tokens"] for part in parts)
    assert drafts > 0
    assert row["draft_acceptance_rate"] == pytest.approx(accepted / drafted)
    assert row["mean_acceptance_length"] == pytest.approx(1 + accepted / drafts)
    assert sum(row["acceptance_histogram"]) == sum(part["num_spec_steps"] for part in parts)
    assert len(row["acceptance_per_position"]) == row["k"]
    assert sum(row["acceptance_per_position"]) == pytest.approx(accepted / drafts)


def test_same_text_is_said_of_the_same_ids(sweep: Document) -> None:
    for row in sweep["results"]:
        same = all(a["tokens"] == b["tokens"] for runs in pairs(sweep, row) for a, b in runs)
        assert row["identical"] is same is True  # tiny models have no ties
        assert row["first_difference"] is None


def test_the_summary_is_over_all_kinds_of_work(sweep: Document) -> None:
    summary = sweep["summary"]
    for entry in summary["candidates"]:
        speedups = {r["category"]: r["speedup"] for r in sweep["results"] if key(r) == key(entry)}
        assert entry["speedup_geomean"] == pytest.approx(geometric_mean(speedups.values()))
        assert entry["worst_speedup"] == speedups[entry["worst_category"]] == min(speedups.values())
    best = summary["candidates"][summary["best"]]
    assert best["speedup_geomean"] == summary["speedup_geomean"]
    assert best["speedup_geomean"] == max(e["speedup_geomean"] for e in summary["candidates"])


def test_conditions_name_the_models_and_the_work(sweep: Document, model: Model) -> None:
    conditions = sweep["conditions"]
    assert conditions["target"]["file"] == model("story").name
    assert [draft["drafter"] for draft in conditions["drafts"]] == ["draft", "renamed"]
    assert (conditions["threads"], conditions["max_tokens"], conditions["seed"]) == (1, 60, 0)
    assert (conditions["workload"], conditions["prompts"]) == ("prompts.jsonl", 3)
    assert conditions["sampling"]["temp"] == 0
    costs = sweep["costs"]
    assert costs.keys() - {"context"} == {"target", "draft", "renamed"}
