"""Runs -> rows, sums and the document, on runs whose numbers are made up."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean, median

import pytest
from bench_documents import bench_document
from toy import GREEDY, PLAIN, random_model
from toy_session import Clock, TimedModel, ToySession

from specdec_cli.app.bench.costs import MOST_GUESSES, Costs
from specdec_cli.app.bench.document import document
from specdec_cli.app.bench.measure import Run
from specdec_cli.app.bench.measure import run as answered
from specdec_cli.app.bench.plan import Candidate, Plan, Task
from specdec_cli.app.bench.planned import planned
from specdec_cli.app.bench.saved import read
from specdec_cli.app.bench.summarise import per_position, rows, totals
from specdec_cli.app.generate import Answer
from specdec_cli.core.cost_curve import CostCurve, speedup
from specdec_cli.core.statistics import Statistics

CHAT, TALK, CODE = Task(0, "chat", (1,)), Task(1, "chat", (2,)), Task(2, "code", (3,))
MODEL, SUFFIX = Candidate("model", 4, "coupled"), Candidate("suffix", None, "block")
PLAN = Plan((CHAT, TALK, CODE), (MODEL, SUFFIX), 3, GREEDY, seed=0, max_tokens=8)
CONDITIONS = bench_document()["conditions"]


@pytest.fixture(scope="module")
def base() -> Answer:
    """Some answer, to be given other numbers."""
    session = ToySession(TimedModel(random_model(1, 4), CostCurve({1: 1.0}), Clock()))
    return answered(session, PLAN, CHAT, 0, None).answer


def run(
    base: Answer,
    task: Task,
    repetition: int,
    candidate: int | None,
    seconds: float,
    *,
    tokens: tuple[int, ...] = (1, 2, 3, 1, 2, 3, 1, 2),
    histogram: tuple[int, ...] = (8,),
    drafts: int = 0,
) -> Run:
    """An answer that took so long; half of it went into the prompt."""
    accepted = sum(i * passes for i, passes in enumerate(histogram))
    statistics = Statistics(
        tokens=len(tokens),
        drafts=drafts,
        drafted=4 * drafts,
        accepted=accepted,
        histogram=list(histogram),
        prompt_seconds=seconds / 2,
        draft_seconds=seconds / 8,
        target_seconds=seconds / 4,
        other_seconds=seconds / 8,
    )
    changed = replace(base, tokens=tokens, statistics=statistics, first_token_seconds=seconds / 2)
    return Run(task, repetition, candidate, changed)


def whole(base: Answer) -> list[Run]:
    """Plain answers take 8, 16, 24 seconds by prompt; each repetition 1 % more than the last."""
    runs = []
    for repetition in range(3):
        for task in PLAN.tasks:
            slower = 1 + repetition / 100
            plain = 8.0 * (task.index + 1) * slower
            runs += [
                run(base, task, repetition, None, plain),
                run(base, task, repetition, 0, plain / 2, histogram=(2, 0, 0, 2), drafts=3),
                run(base, task, repetition, 1, plain * 2 / slower),
            ]
    return runs


def test_a_row_is_a_mean_over_prompts_of_medians_over_repetitions(base: Answer) -> None:
    times = {(0, 0): (4.0, 2.0), (0, 1): (4.0, 1.0), (0, 2): (4.0, 8.0), (1, 0): (6.0, 1.0)}
    runs = []
    for (index, repetition), (plain, drafted) in times.items():
        task = PLAN.tasks[index]
        runs += [run(base, task, repetition, None, plain), run(base, task, repetition, 0, drafted)]
    (row,) = rows(PLAN, runs)
    assert row.speedup == pytest.approx(geometric_mean([median([2, 4, 0.5]), 6]))
    assert row.plain_tps == pytest.approx(geometric_mean([8 / 4, 8 / 6]))
    assert row.tps == pytest.approx(geometric_mean([8 / 2, 8 / 1]))
    assert (row.prompts, row.pairs) == (2, 4)
    assert row.spread == pytest.approx((8 - 1) / 4)  # of the prompt that was repeated
    assert row.plain_spread == 0
    assert row.interval is not None
    assert row.interval[0] < row.speedup < row.interval[1]


def test_a_single_pair_has_neither_spread_nor_interval(base: Answer) -> None:
    (row,) = rows(PLAN, [run(base, CHAT, 0, None, 4), run(base, CHAT, 0, 0, 2)])
    assert (row.speedup, row.interval, row.spread, row.plain_spread) == (2, None, None, None)


def test_runs_without_their_partner_are_left_out(base: Answer) -> None:
    lonely = [run(base, CHAT, 0, None, 4), run(base, CHAT, 1, 0, 2), run(base, CODE, 0, 1, 2)]
    assert rows(PLAN, lonely) == []
    assert totals(PLAN, []) == []


@pytest.mark.parametrize(
    ("tokens", "position", "ids"),
    [((1, 2, 9), 2, (3, 9)), ((1, 2), 2, (3, -1)), ((1, 2, 3, 4), 3, (-1, 4)), ((9,), 0, (1, 9))],
)
def test_a_first_difference_names_both_tokens(
    base: Answer, tokens: tuple[int, ...], position: int, ids: tuple[int, int]
) -> None:
    plain = run(base, TALK, 0, None, 4, tokens=(1, 2, 3))
    (row,) = rows(PLAN, [plain, run(base, TALK, 0, 0, 2, tokens=tokens)])
    assert row.identical is False
    found = row.first_difference
    assert found is not None
    assert (found.task, found.position, found.tokens) == (TALK, position, ids)


def test_only_a_rule_that_promises_a_text_is_held_to_it(base: Answer) -> None:
    sampled = replace(PLAN, sampling=PLAIN)
    runs = [
        run(base, CHAT, 0, None, 4),
        *(run(base, CHAT, 0, candidate, 2, tokens=(5,)) for candidate in (0, 1)),
    ]
    coupled, block = rows(sampled, runs)
    assert coupled.identical is False
    assert block.identical is None
    assert block.first_difference is None
    assert [row.identical for row in rows(PLAN, runs)] == [False, False]  # greedy: all promise


def test_acceptance_by_position_goes_as_far_as_a_round_may() -> None:
    counts = Statistics(drafts=4, histogram=[3, 1, 2])
    assert per_position(counts, 4) == [3 / 4, 2 / 4, 0, 0]
    assert per_position(Statistics(drafts=2, histogram=[5]), 2) == [0, 0]


def test_kinds_of_work_count_alike_whatever_their_prompts(base: Answer) -> None:
    found = rows(PLAN, whole(base))
    assert [(row.category, row.candidate) for row in found] == [
        ("chat", 0), ("chat", 1), ("code", 0), ("code", 1),
    ]  # fmt: skip
    first, second = totals(PLAN, found)
    assert first.speedup == pytest.approx(2)
    assert second.speedup == pytest.approx(geometric_mean([0.5 * 1.01] * 2))
    assert second.interval is not None
    assert second.interval[0] <= second.speedup <= second.interval[1]


def test_candidates_are_compared_over_what_all_of_them_did(base: Answer) -> None:
    """Interrupted in the last kind of work, where only one of them had its turn."""
    runs = [
        *(run(base, CHAT, 0, arm, seconds) for arm, seconds in ((None, 8), (0, 4), (1, 2))),
        *(run(base, CODE, 0, arm, seconds) for arm, seconds in ((None, 8), (0, 0.5))),
    ]
    found = rows(PLAN, runs)
    assert len(found) == 3
    assert [total.speedup for total in totals(PLAN, found)] == pytest.approx([2, 4])


def written(base: Answer, runs: list[Run], **more: object) -> dict[str, object]:
    asked: dict[str, object] = {"costs": [], "limits": {}, "gaps": {}, "skipped": []}
    return document(CONDITIONS, PLAN, runs, **{**asked, "complete": True, **more})  # type: ignore[arg-type]


def test_a_document_of_any_part_can_be_read_back(base: Answer, tmp_path: Path) -> None:
    runs = whole(base)
    for size in range(len(runs) + 1):
        made = written(base, runs[:size], complete=size == len(runs))
        file = tmp_path / "saved.json"
        file.write_text(json.dumps(made, allow_nan=False))
        assert read(file) == json.loads(json.dumps(made))


def test_the_best_is_the_fastest_over_all(base: Answer) -> None:
    made = written(base, whole(base))
    summary = made["summary"]
    assert summary["best"] == 0  # type: ignore[index]
    assert summary["speedup_geomean"] == pytest.approx(2)  # type: ignore[index]
    assert written(base, [])["summary"]["best"] is None  # type: ignore[index]


def test_times_are_of_one_answer_and_shares_of_all(base: Answer) -> None:
    runs = []
    for repetition in range(2):
        runs += [run(base, CHAT, repetition, None, 9.0)]
        runs += [run(base, CHAT, repetition, 0, 8.0, drafts=1)]
    (result,) = written(base, runs)["results"]  # type: ignore[misc]
    assert (result["draft_ms"], result["target_ms"], result["other_ms"]) == (1e3, 2e3, 1e3)
    assert result["draft_share"] == 0.25
    assert result["first_token_ms"] == 4e3
    assert result["acceptance_per_position"] == [0, 0, 0, 0]


def test_a_limit_is_known_where_it_is_for_every_prompt(base: Answer) -> None:
    limits = {(0, 0): 4.0, (1, 0): 1.0, (2, 0): 2.0, (0, 1): 4.0}
    results = written(base, whole(base), limits=limits)["results"]
    by_row = {(row["category"], row["drafter"]): row for row in results}  # type: ignore[attr-defined]
    chat = by_row["chat", "model"]
    assert chat["oracle_tps"] == pytest.approx(2)
    assert chat["oracle_speedup"] == pytest.approx(2 / chat["plain_tps"])
    assert chat["of_oracle"] == pytest.approx(chat["tps"] / 2)
    assert by_row["chat", "suffix"]["oracle_tps"] is None


@pytest.mark.parametrize("acceptance", [0.0, 0.7, 1.0])
def test_a_made_up_acceptance_gives_what_the_costs_say(acceptance: float, tmp_path: Path) -> None:
    verify, slow, fast = (
        CostCurve(points)
        for points in ({1: 0.1, 2: 0.11, 32: 0.4}, {1: 0.09, 32: 0.2}, {1: 0.01, 32: 0.05})
    )
    lengths = (1, 4, 16, None)
    names = ("model", "other", "suffix", "auto")
    plan = replace(
        PLAN, tasks=(), candidates=tuple(Candidate(n, k, "coupled") for n in names for k in lengths)
    )
    costs = Costs(256, verify, {"model": slow, "other": fast})
    made = planned({**CONDITIONS, "synthetic_acceptance": acceptance}, plan, costs, acceptance)
    file = tmp_path / "planned.json"
    file.write_text(json.dumps(made, allow_nan=False))
    assert read(file)["conditions"]["synthetic_acceptance"] == acceptance
    gains = {(row["drafter"], row["k"]): row["speedup"] for row in made["results"]}
    for name, draft in (("model", slow), ("other", fast), ("suffix", None)):
        every = [speedup(verify, draft, k, acceptance) for k in range(MOST_GUESSES + 1)]
        assert gains[name, "auto"] == max(every) >= 1
        for k in (1, 4, 16):
            assert gains[name, k] == every[k]
    assert gains["auto", "auto"] == max(gains["model", "auto"], gains["other", "auto"])
    assert all(row["pairs"] == 0 and row["identical"] is None for row in made["results"])
    assert made["runs"] == []
