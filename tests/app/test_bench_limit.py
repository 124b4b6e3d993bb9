"""The oracle of a benchmark: nothing that was measured is faster, where costs are exact."""

from __future__ import annotations

import pytest
from toy import GREEDY, PLAIN, FailingModel, fixed_rows, random_model
from toy_session import Clock, TimedModel, ToySession, exact_costs

from specdec_cli.app.bench.limit import Limits, limits
from specdec_cli.app.bench.measure import Run, measure
from specdec_cli.app.bench.plan import Candidate, Plan, Task
from specdec_cli.core.cost_curve import CostCurve
from specdec_cli.core.options import SamplingOptions
from specdec_cli.engine.table_model import TableModel
from specdec_cli.errors import EvaluationError

VOCAB = 5
PROMPTS = ((1, 2, 3, 4, 1, 2, 3), (3, 3, 1), (4, 2, 4, 2, 4))
CHEAP, DEAR = {1: 10.0, 2: 10.6, 4: 12.0, 8: 15.0, 32: 33.0}, {1: 10.0, 2: 19.0, 32: 290.0}
FREE, SLOW = {1: 0.5, 32: 2.0}, {1: 6.0, 2: 6.5, 32: 21.5}
LENGTHS = (1, 2, 5, 12)
TOLERANCE = 1e-9


def plan(sampling: SamplingOptions, *names: str, ignore_eos: bool = True, seed: int = 0) -> Plan:
    candidates = [Candidate(name, k, "coupled") for name in names for k in (*LENGTHS, None)]
    tasks = [Task(i, "chat", prompt) for i, prompt in enumerate(PROMPTS)]
    return Plan(
        tuple(tasks), tuple(candidates), 1, sampling, seed, max_tokens=40, ignore_eos=ignore_eos
    )


def session_of(
    clock: Clock, seed: int, verify: dict[int, float], read: dict[int, float]
) -> ToySession:
    """A draft that knows its target a little: the last two tokens of three."""
    target = TimedModel(random_model(seed, VOCAB), CostCurve(verify), clock)
    like = random_model(seed, VOCAB, order=3 - seed % 2)
    return ToySession(target, model=TimedModel(like, CostCurve(read), clock))


def run_all(session: ToySession, asked: Plan) -> tuple[list[Run], Limits]:
    runs = [event for event in measure(session, asked) if isinstance(event, Run)]
    drafts = {draft.name: draft.context for draft in session.drafts}
    costs = exact_costs(session.target, drafts)  # type: ignore[arg-type]
    found: Limits = {}
    for part in limits(session, asked, runs, costs):
        found.update(part)
    return runs, found


@pytest.mark.parametrize("verify", [CHEAP, DEAR], ids=["cheap rows", "dear rows"])
@pytest.mark.parametrize("read", [FREE, SLOW], ids=["fast draft", "slow draft"])
@pytest.mark.parametrize("ignore_eos", [True, False])
@pytest.mark.parametrize("sampling", [GREEDY, PLAIN], ids=["greedy", "sampled"])
@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_is_faster_than_the_limit(
    monkeypatch: pytest.MonkeyPatch,
    verify: dict[int, float],
    read: dict[int, float],
    ignore_eos: bool,
    sampling: SamplingOptions,
    seed: int,
) -> None:
    clock = Clock()
    clock.rules(monkeypatch)
    session = session_of(clock, seed, verify, read)
    asked = plan(sampling, "model", "suffix", "auto", ignore_eos=ignore_eos, seed=seed)
    runs, found = run_all(session, asked)
    checked = 0
    for run in runs:
        for (task, candidate), limit in found.items():
            if task == run.task.index and run.candidate in (None, candidate):
                assert run.tps <= limit * (1 + TOLERANCE), (run.candidate, run.tps, limit)
                checked += run.candidate is not None
    finished = [run for run in runs if run.answer.statistics.passes > 1]
    assert checked >= len(finished) * 0.8 > 0


def test_a_draft_that_is_always_right_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine guesses a round fill the budget of 41 tokens exactly, and each round is whole."""
    clock = Clock()
    clock.rules(monkeypatch)
    rows = fixed_rows([0.1, 0.6, 0.1, 0.1, 0.1])
    verify = CostCurve({1: 10.0, 10: 11.0, 11: 500.0})
    read = CostCurve({1: 0.1, 2: 0.1, 6: 5.0, 7: 5.0})  # the prompt has six tokens
    target = TimedModel(TableModel(rows, VOCAB), verify, clock)
    session = ToySession(target, model=TimedModel(TableModel(rows, VOCAB), read, clock))
    asked = Plan(
        (Task(0, "chat", (1,) * 6),), (Candidate("model", 9, "coupled"),), 1, GREEDY, 0, 41
    )
    runs, found = run_all(session, asked)
    assert found[0, 0] == pytest.approx(runs[1].tps)
    assert found[0, 0] > 4 * runs[0].tps


def test_dear_guesses_leave_plain_decoding_as_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    clock.rules(monkeypatch)
    session = session_of(clock, 1, {1: 10.0, 2: 100.0, 32: 3100.0}, SLOW)
    runs, found = run_all(session, plan(GREEDY, "model"))
    plain = {run.task.index: run.tps for run in runs if run.candidate is None}
    for (task, _), limit in found.items():
        assert limit == pytest.approx(plain[task])


def test_where_acceptance_is_drawn_anew_there_is_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    clock.rules(monkeypatch)
    session = session_of(clock, 2, CHEAP, FREE)
    candidates = tuple(Candidate("model", 3, rule) for rule in ("coupled", "rejection", "block"))
    asked = Plan((Task(0, "chat", (1, 2)),), candidates, 1, PLAIN, 0, 20, ignore_eos=True)
    _, found = run_all(session, asked)
    assert set(found) == {(0, 0)}
    greedy = Plan((Task(0, "chat", (1, 2)),), candidates, 1, GREEDY, 0, 20, ignore_eos=True)
    _, found = run_all(session, greedy)
    assert set(found) == {(0, 0), (0, 1), (0, 2)}
    assert len(set(found.values())) == 1


def test_a_draft_that_fails_or_cannot_roll_back_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    clock.rules(monkeypatch)
    broken = EvaluationError("it broke", why="a test", fix="none")
    table = random_model(2, VOCAB)
    stuck = TableModel(table.rows, VOCAB, can_roll_back=False)
    read = CostCurve(FREE)
    session = ToySession(
        TimedModel(table, CostCurve(CHEAP), clock),
        good=TimedModel(table, read, clock),
        broken=TimedModel(FailingModel(table, 3, broken), read, clock),
        stuck=TimedModel(stuck, read, clock),
    )
    names = ("good", "broken", "stuck")
    candidates = tuple(Candidate(name, 2, "coupled") for name in names)
    asked = Plan((Task(0, "chat", (1, 2)),), candidates, 1, GREEDY, 0, 20, ignore_eos=True)
    runs, found = run_all(session, asked)
    assert len(runs) == 4
    assert "drafting stopped" in runs[2].answer.decision
    assert set(found) == {(0, 0)}
