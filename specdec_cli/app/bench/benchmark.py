"""A whole benchmark: costs, answers by turns, the oracle, first differences; then the document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from specdec_cli.app.bench.conditions import conditions
from specdec_cli.app.bench.costs import ALL_ROWS, ROWS, Costs, measure_costs
from specdec_cli.app.bench.document import document, measured_costs
from specdec_cli.app.bench.limit import Limits, limits
from specdec_cli.app.bench.measure import Progress, Run, measure
from specdec_cli.app.bench.plan import Plan, Task
from specdec_cli.app.bench.planned import SYNTHETIC, planned
from specdec_cli.app.bench.summarise import rows
from specdec_cli.app.session import Session
from specdec_cli.core.pass_seconds import PassSeconds
from specdec_cli.engine.language_model import Interrupted
from specdec_cli.errors import EvaluationError, UsageError

Document = dict[str, Any]
Skipped = Sequence[Mapping[str, Any]]
DEPTH = 256  # where the context is no matter: cost tables of their own


def benchmark(
    session: Session, plan: Plan, *, workload: str, skipped: Skipped
) -> Iterator[Progress | Document]:
    """Yield where things stand, then the document; an interrupted one holds what was finished.

    Raises:
        EvaluationError: llama.cpp failed; after the document, if any answer was finished.
    """
    found = conditions(session, plan.sampling, **_asked(plan, workload))
    costs: list[Costs] = []
    runs: list[Run] = []
    oracle: Limits = {}
    gaps: dict[tuple[int, int], float] = {}
    failure: EvaluationError | None = None
    try:
        yield Progress(0, plan.runs, None, "measuring what a pass costs")
        costs.append(measure_costs(session, _depth(session, plan)))
        _teach(session, costs[0])
        for event in measure(session, plan):
            if isinstance(event, Run):
                runs.append(event)
            else:
                yield event
        if not session.stop.is_set():
            for part in limits(session, plan, runs, costs[0]):
                yield Progress(plan.runs, plan.runs, None, "what an oracle would have done")
                oracle.update(part)
            gaps.update(_gaps(session, plan, runs))
    except Interrupted:
        pass
    except EvaluationError as error:
        if not runs:
            raise
        failure = error
    yield document(
        found,
        plan,
        runs,
        costs=costs,
        limits=oracle,
        gaps=gaps,
        skipped=skipped,
        complete=not session.stop.is_set() and failure is None,
    )
    if failure is not None:
        raise failure


def costs_alone(
    session: Session, plan: Plan, depths: Sequence[int], repetitions: int
) -> Iterator[Progress | Document]:
    """`--costs`: v(n) of every model at every depth, and nothing generated.

    Raises:
        UsageError: a depth that leaves no room for the passes.
    """
    for depth in depths:
        if depth + ALL_ROWS[-1] > session.context_size:
            raise UsageError(
                f"a depth of {depth} tokens leaves no room in the context of "
                f"{session.context_size}",
                why=f"passes of up to {ALL_ROWS[-1]} rows are measured there",
                fix=f"use -c {depth + 256} or a smaller --depth",
            )
    found = conditions(session, plan.sampling, **_asked(plan, "costs") | {"max_tokens": None})
    costs: list[Costs] = []
    try:
        for number, depth in enumerate(depths):
            yield Progress(number, len(depths), None, f"passes after {depth} tokens")
            costs.append(
                measure_costs(
                    session, depth, rows=ALL_ROWS, draft_rows=ALL_ROWS, repetitions=repetitions
                )
            )
    except Interrupted:
        pass
    yield measured_costs(found, costs, complete=not session.stop.is_set())


def synthetic(session: Session, plan: Plan, acceptance: float) -> Iterator[Progress | Document]:
    """`--synthetic-acceptance`: what the cost curve would give, and nothing generated."""
    nothing = {"max_tokens": None, "repetitions": None, "synthetic_acceptance": acceptance}
    found = conditions(session, plan.sampling, **_asked(plan, SYNTHETIC) | nothing)
    yield Progress(0, 1, None, "measuring what a pass costs")
    try:
        costs = measure_costs(session, _with_room(session, DEPTH))
    except Interrupted:
        return
    yield planned(found, plan, costs, acceptance)


def _teach(session: Session, costs: Costs) -> None:
    """The policy starts with these costs, as it does on every later start of a pair."""
    session.experience.verify = PassSeconds(costs.target.points)
    for draft in session.drafts:
        session.experience.drafts[draft.key] = PassSeconds(costs.drafts[draft.name].points)


def _asked(plan: Plan, workload: str) -> dict[str, Any]:
    return {
        "seed": plan.seed,
        "max_tokens": plan.max_tokens,
        "repetitions": plan.repetitions,
        "workload": workload,
        "prompts": len(plan.tasks),
        "synthetic_acceptance": None,
    }


def _depth(session: Session, plan: Plan) -> int:
    """In the middle of the typical answer."""
    middle = int(median(len(task.tokens) for task in plan.tasks)) + plan.max_tokens // 2
    return _with_room(session, middle)


def _with_room(session: Session, depth: int) -> int:
    """The depth, or less where the context has no room for the widest pass behind it."""
    return max(0, min(depth, session.context_size - ROWS[-1]))


def _gaps(
    session: Session, plan: Plan, runs: Sequence[Run]
) -> Iterator[tuple[tuple[int, int], float]]:
    """How far apart the plain run's two best tokens were where a speculative text parted."""
    answers: dict[int, tuple[Task, tuple[int, ...]]] = {}
    for run in runs:
        if run.candidate is None:
            answers.setdefault(run.task.index, (run.task, run.answer.tokens))
    places = {
        (found.task.index, found.position)
        for row in rows(plan, runs)
        if (found := row.first_difference)
    }
    for index, position in sorted(places):
        task, tokens = answers[index]
        logits = session.target.logits([*task.tokens, *tokens[:position]], last=1)[0]
        second, first = np.partition(logits, -2)[-2:]
        yield (index, position), float(first - second)
