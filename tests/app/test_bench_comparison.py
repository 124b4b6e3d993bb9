"""Two benchmarks against each other, and files that are none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench_documents import bench_document, costs_document, hostile_document, nulls_document, slower

from specdec_cli.app.bench import saved
from specdec_cli.app.bench.comparison import compare, regressions
from specdec_cli.app.bench.costs import Costs
from specdec_cli.app.bench.plan import Candidate, Plan
from specdec_cli.app.bench.planned import planned
from specdec_cli.app.bench.saved import read
from specdec_cli.core.cost_curve import CostCurve
from specdec_cli.core.options import SamplingOptions
from specdec_cli.errors import UsageError

Document = dict[str, Any]


def write(document: object) -> Path:
    path = Path("saved.json")
    path.write_text(json.dumps(document))
    return path


def refused(path: Path, *words: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(path)
    error = caught.value
    text = f"{error.message}\n{error.why}\n{error.fix}"
    assert error.why
    assert error.fix
    for word in (path.name, *words):
        assert word in text, text


def test_a_benchmark_equals_itself() -> None:
    found = compare(bench_document(), bench_document())
    assert [change.ratio for change in found.candidates] == [1.0] * 3
    assert all(change.overlap for change in (*found.candidates, *found.rows))
    assert found.conditions == found.only_before == found.only_after == ()
    assert regressions(found, 0.0) == []


def test_rows_are_matched_by_candidate_and_category() -> None:
    before, after = bench_document(["chat", "code"]), bench_document(["code", "math"])
    found = compare(before, after)
    assert {change.category for change in found.rows} == {"code"}
    assert len(found.rows) == len(found.candidates) == 3
    assert len(found.only_before) == len(found.only_after) == 3
    assert all("chat" in place for place in found.only_before)
    assert all("math" in place for place in found.only_after)


def test_a_mean_is_over_what_both_have_and_then_has_no_interval() -> None:
    before, after = bench_document(["chat", "code"]), bench_document(["code"])
    candidate = compare(before, after).candidates[0]
    assert candidate.ratio == pytest.approx(1)
    assert candidate.before.interval is None
    assert candidate.overlap is None
    whole = compare(after, after).candidates[0]
    assert whole.before.interval == tuple(after["summary"]["candidates"][0]["speedup_ci"])


def test_a_regression_is_a_mean_that_fell_by_more_than_the_tolerance() -> None:
    found = compare(bench_document(), slower(bench_document(), 0.96))
    assert regressions(found, 0.05) == []
    lines = regressions(found, 0.03)
    assert len(lines) == 3  # the categories fell as much, but their intervals overlap
    assert all("all categories" in line and "4.0% less" in line for line in lines)


def test_a_category_counts_when_its_intervals_are_apart() -> None:
    before, after = bench_document(), bench_document()
    after["results"][0] = slower(bench_document(), 0.7)["results"][0]
    lines = regressions(compare(before, after), 0.1)
    assert len(lines) == 1
    assert "chat" in lines[0]
    assert "model k=2" in lines[0]
    after["results"][0]["speedup_ci"] = None  # then nothing says that it is more than noise
    assert regressions(compare(before, after), 0.1) == []


def test_what_became_faster_is_no_regression() -> None:
    assert regressions(compare(bench_document(), slower(bench_document(), 1.5)), 0.0) == []


def test_a_slower_machine_is_no_regression() -> None:
    """All speeds halve, plain ones too: the ratios stay."""
    before, after = bench_document(), bench_document()
    for result in after["results"]:
        result["plain_tps"] /= 2
        result["tps"] /= 2
    found = compare(before, after)
    assert regressions(found, 0.01) == []
    assert found.rows[0].plain_tps == pytest.approx((9.7, 4.85), rel=0.01)


def test_nothing_in_common_is_an_error_and_not_a_pass() -> None:
    others = bench_document(candidates=[("suffix", 5, "coupled")])
    for after in (others, costs_document(), nulls_document()):
        with pytest.raises(UsageError, match="nothing to compare"):
            compare(bench_document(), after)


def test_other_conditions_are_named() -> None:
    before, after = bench_document(), bench_document()
    after["conditions"] |= {"threads": 8, "gpu": "RTX", "max_tokens": 64, "date": "2027-01-01"}
    after["conditions"]["target"]["sha256"] = "f" * 64
    after["conditions"]["drafts"][0] |= {"quantisation": "Q8_0", "sha256": "f" * 64}
    after["conditions"]["sampling"]["temp"] = 0.8
    after["conditions"]["versions"]["llama_cpp"] = "b9999"
    assert compare(before, after).conditions == (
        "target: another file of that name, sha256 000000000000 before, ffffffffffff now",
        "draft model: Q4_K_M before, Q8_0 now",
        "GPU: none before, RTX now",
        "threads: 2 before, 8 now",
        "tokens an answer: 96 before, 64 now",
        "sampling temp: 0.0 before, 0.8 now",
        "llama cpp version: b1234 before, b9999 now",
    )


@pytest.mark.parametrize(
    "make", [bench_document, costs_document, hostile_document, nulls_document], ids=str
)
def test_what_was_saved_is_read_back(make: Callable[[], Document]) -> None:
    assert read(write(make())) == make()


def test_what_a_plan_computes_can_be_read_back() -> None:
    """The writer and the reader agree on the schema, and on what may be null."""
    conditions = bench_document()["conditions"] | {"synthetic_acceptance": 0.8}
    plan = Plan((), (Candidate("model", 4, "coupled"),), 1, SamplingOptions(temp=0.0), 0, 96)
    costs = Costs(128, CostCurve({1: 0.1, 8: 0.2}), {"model": CostCurve({1: 0.01, 2: 0.012})})
    document = planned(conditions, plan, costs, 0.8)
    path = write(document)
    assert read(path) == json.loads(path.read_text())


@pytest.mark.parametrize(
    "text", ["", "{", "\x00", "\udcff", '{"schema": NaN', "[" * 9999, "9" * 9999], ids=repr
)
def test_what_is_not_json_is_refused(text: str) -> None:
    path = Path("saved.json")
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    refused(path)


@pytest.mark.parametrize("document", [None, [], 3, {}, {"schema": 1}, {"schema": "x/1"}], ids=str)
def test_json_that_is_no_benchmark_is_refused(document: object) -> None:
    refused(write(document), "schema")


def test_a_missing_file_is_refused() -> None:
    refused(Path("nowhere.json"), "No such file")
    refused(Path("."), "Is a directory")


def test_another_schema_is_refused_by_name() -> None:
    document = bench_document() | {"schema": "specdec-bench/2"}
    refused(write(document), "specdec-bench/2", saved.SCHEMA)


def keys(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Where every key of a document is, in the first entry of each list."""
    if isinstance(value, dict):
        inner = [found for key in value for found in keys(value[key], (*path, key))]
        return [*((*path, key) for key in value), *inner]
    return keys(value[0], (*path, 0)) if isinstance(value, list) and value else []


FREE = {"versions", "sampling", "runs", "exact", "extra_kernels", "schema"}  # hold what they like
FIXED = [
    path
    for path in keys(bench_document())
    if not FREE & {*path[:-1]} and path[-1] not in FREE and not str(path[-1]).isdigit()
]


@pytest.mark.parametrize("path", FIXED, ids=lambda path: ".".join(map(str, path)))
def test_every_key_is_asked_for(path: tuple[str | int, ...]) -> None:
    document = bench_document()
    holder: Any = document
    for key in path[:-1]:
        holder = holder[key]
    del holder[path[-1]]
    if path == ("costs", "draft"):  # there is none without a draft
        assert read(write(document)) == document
    else:
        refused(write(document), f"{path[-1]}` is missing")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["results"][1].update(speedup=0), "results[1].speedup"),
        (lambda d: d["results"][1].update(speedup="2"), "results[1].speedup"),
        (lambda d: d["results"][1].update(speedup=True), "results[1].speedup"),
        (lambda d: d["results"][1].update(tps=1e300), "results[1].tps"),
        (lambda d: d["results"][1].update(tps=10**400), "results[1].tps"),
        (lambda d: d["results"][1].update(speedup_ci=[1]), "results[1].speedup_ci"),
        (lambda d: d["results"][1].update(k="many"), "results[1].k"),
        (lambda d: d["results"][1].update(acceptance_per_position=[2]), "per_position[0]"),
        (lambda d: d["summary"].update(best=3), "summary.best"),
        (lambda d: d["summary"].update(best=-1), "summary.best"),
        (lambda d: d["costs"].update(target={"2": 1.0}), "costs.target"),
        (lambda d: d["costs"].update(target={"1": 0.0}), "costs.target"),
        (lambda d: d["costs"].update(draft={"1": 1.0, "x": 1.0}), "costs.draft"),
        (lambda d: d.update(results={}), "results"),
        (lambda d: d.update(runs=[3]), "runs[0]"),
        (lambda d: d.update(conditions=[]), "conditions"),
    ],
)
def test_a_value_that_cannot_be_is_named(change: Callable[[Document], Any], words: str) -> None:
    document = bench_document()
    change(document)
    refused(write(document), words)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_is_none_is_refused(word: str) -> None:
    text = json.dumps(bench_document())
    path = Path("saved.json")
    path.write_text(text.replace('"plain_spread": 0.01', f'"plain_spread": {word}', 1))
    refused(path, "plain_spread")
