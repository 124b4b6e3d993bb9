"""What a benchmark runs and in which order, on toy models and a clock of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from toy import GREEDY, random_model
from toy_session import Clock, TimedModel, ToySession, exact_costs

from specdec_cli.app.bench import benchmark as whole
from specdec_cli.app.bench.measure import Progress, Run, measure
from specdec_cli.app.bench.plan import Candidate, Plan, Task
from specdec_cli.app.bench.summarise import rows
from specdec_cli.core.cost_curve import CostCurve
from specdec_cli.errors import EvaluationError

VERIFY = CostCurve({1: 10.0, 32: 41.0})
READ = CostCurve({1: 1.0, 32: 7.2})
TASKS = (Task(0, "chat", (1, 2, 3, 4)), Task(2, "chat", (3, 1, 2)), Task(3, "code", (4, 4, 1)))
CANDIDATES = (Candidate("model", 3, "coupled"), Candidate("suffix", None, "coupled"))
PLAN = Plan(TASKS, CANDIDATES, 3, GREEDY, seed=0, max_tokens=12, ignore_eos=True)
ARMS = 1 + len(CANDIDATES)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    clock.rules(monkeypatch)
    return clock


@pytest.fixture
def session(clock: Clock) -> ToySession:
    target = TimedModel(random_model(1, 6), VERIFY, clock)
    return ToySession(target, model=TimedModel(random_model(2, 6), READ, clock))


def measured(session: ToySession, plan: Plan = PLAN) -> list[Run]:
    return [event for event in measure(session, plan) if isinstance(event, Run)]


def test_every_prompt_is_answered_in_every_way_every_time(session: ToySession) -> None:
    runs = measured(session)
    done = Counter((run.task.index, run.repetition, run.candidate) for run in runs)
    assert set(done.values()) == {1}
    assert len(done) == PLAN.runs == len(TASKS) * ARMS * 3
    for run in runs:
        by_rule = run.answer.statistics
        assert by_rule.tokens == 12
        assert bool(by_rule.drafted) <= (run.candidate is not None)


def test_the_ways_take_turns_and_each_is_first_as_often(session: ToySession) -> None:
    runs = measured(session)
    groups = [runs[start : start + ARMS] for start in range(0, len(runs), ARMS)]
    for group in groups:
        assert len({(run.task.index, run.repetition) for run in group}) == 1
        assert len({run.candidate for run in group}) == ARMS
    firsts = Counter(group[0].candidate for group in groups)
    assert firsts == dict.fromkeys([None, 0, 1], len(groups) // ARMS)
    by_task = {run.task.index: set() for run in runs}
    for group in groups:
        by_task[group[0].task.index].add(group[0].candidate)
    assert all(len(first) > 1 for first in by_task.values())


def test_every_answer_begins_with_empty_caches(session: ToySession) -> None:
    target, draft = session.target, session.drafts[0].context
    seen: set[int | None] = set()
    for event in measure(session, PLAN):
        if isinstance(event, Run):
            seen.add(event.candidate)
            size = len(event.task.tokens)
            assert event.answer.cached_tokens == 0
            assert target.passes[0] == size
            # The draft begins with the prompt and the first token, or is not asked.
            assert draft.passes[:1] == ([size + 1] if event.candidate == 0 else [])
        target.passes.clear()
        draft.passes.clear()
    assert seen == {None, 0, 1}


def test_repetitions_take_the_same_time(session: ToySession) -> None:
    seconds: dict[tuple[int, int | None], set[float]] = {}
    for run in measured(session):
        if run.candidate != 1:  # the policy of `auto` looks at the clock
            key = run.task.index, run.candidate
            seconds.setdefault(key, set()).add(round(run.seconds, 6))
    assert all(len(times) == 1 for times in seconds.values())


def test_texts_are_those_of_plain_decoding(session: ToySession) -> None:
    runs = measured(session)
    plain = {run.task.index: run.answer.tokens for run in runs if run.candidate is None}
    assert all(run.answer.tokens == plain[run.task.index] for run in runs)
    assert all(row.identical for row in rows(PLAN, runs))


@pytest.mark.parametrize("cut", [1, 9, 40, 100, 200])
def test_a_stop_drops_the_answer_that_it_cut(session: ToySession, cut: int) -> None:
    whole = [(run.task.index, run.repetition, run.candidate) for run in measured(session)]
    left = cut

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            session.stop.set()

    session.target.before = count
    runs = measured(session)
    assert [(run.task.index, run.repetition, run.candidate) for run in runs] == whole[: len(runs)]
    assert len(runs) < len(whole)
    assert all(run.answer.finish == "length" for run in runs)
    assert [row.pairs for row in rows(PLAN, runs)] == pairs_of(runs)


@pytest.mark.parametrize("finished", [0, 1, 7])
def test_a_failure_loses_no_answer_that_was_finished(
    session: ToySession, monkeypatch: pytest.MonkeyPatch, finished: int
) -> None:
    runs = measured(session)[:finished]

    def failing(session: ToySession, plan: Plan) -> Iterator[Run]:
        yield from runs
        raise EvaluationError("no", why="because", fix="none")

    costs = exact_costs(session.target, {})
    monkeypatch.setattr(whole, "measure", failing)
    monkeypatch.setattr(whole, "measure_costs", lambda session, depth: costs)
    monkeypatch.setattr(whole, "_teach", lambda session, costs: None)
    monkeypatch.setattr(whole, "conditions", lambda *asked, **more: {})
    monkeypatch.setattr(whole, "document", lambda found, plan, runs, **rest: {"runs": runs, **rest})
    events: list[object] = []
    with pytest.raises(EvaluationError):
        events.extend(whole.benchmark(session, PLAN, workload="toy", skipped=()))
    documents = [event for event in events if isinstance(event, dict)]
    assert [document["runs"] for document in documents] == ([runs] if finished else [])
    assert not any(document["complete"] for document in documents)


def pairs_of(runs: list[Run]) -> list[int]:
    """How many finished pairs each row has, counted the slow way."""
    done = {(run.task, run.repetition, run.candidate) for run in runs}
    counts = []
    for category in PLAN.categories:
        for candidate in range(len(CANDIDATES)):
            pairs = [
                (task, repetition)
                for task, repetition, arm in done
                if arm == candidate
                and task.category == category
                and (task, repetition, None) in done
            ]
            counts += [len(pairs)] if pairs else []
    return counts


def test_any_part_of_a_benchmark_has_its_rows(session: ToySession) -> None:
    runs = measured(session)
    for size in range(len(runs) + 1):
        assert [row.pairs for row in rows(PLAN, runs[:size])] == pairs_of(runs[:size])


def test_the_time_left_is_known_once_every_way_was_seen(clock: Clock) -> None:
    tasks = tuple(Task(i, "chat", (1, 2)) for i in range(3))
    plan = Plan(tasks, CANDIDATES[:1], 2, GREEDY, seed=0, max_tokens=5, ignore_eos=True)
    target = TimedModel(random_model(1, 6), VERIFY, clock)
    session = ToySession(target, model=TimedModel(random_model(2, 6), READ, clock))
    progress, at = [], []
    for event in measure(session, plan):
        if isinstance(event, Progress):
            progress.append(event)
            at.append(clock.now)
    assert [event.done for event in progress] == list(range(plan.runs))
    assert {event.total for event in progress} == {plan.runs} == {12}
    assert progress[0].seconds_left is None
    for event, now in zip(progress[2:], at[2:], strict=True):
        assert event.seconds_left == pytest.approx(clock.now - now)
