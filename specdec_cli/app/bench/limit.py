"""How fast an oracle would have been that knew which guesses would be accepted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter

from specdec_cli.app.bench.costs import MOST_GUESSES, Costs
from specdec_cli.app.bench.measure import Run
from specdec_cli.app.bench.plan import Plan
from specdec_cli.app.generate import effective_sampling
from specdec_cli.app.session import Session
from specdec_cli.core.chance import Chance
from specdec_cli.core.cost_curve import CostCurve
from specdec_cli.core.limit import SourceOnText, shortest_seconds
from specdec_cli.core.verification import RULES
from specdec_cli.engine.on_text import hits
from specdec_cli.errors import EvaluationError

Limits = dict[tuple[int, int], float]
"""Tokens per second of the oracle for (task index, candidate)."""


def limits(session: Session, plan: Plan, runs: Sequence[Run], costs: Costs) -> Iterator[Limits]:
    """One task after another: the limit of every candidate whose drafting is bound to the text.

    The oracle uses the sources that the candidate may use. Costs are scaled to the speed at which
    the task was decoded plainly, so that a slow moment of the machine or a longer context counts
    for both. Where acceptance is drawn anew (`rejection` and `block` with a temperature) there is
    no such path.
    """
    plain: dict[int, list[Run]] = {}
    for run in runs:
        if run.candidate is None:
            plain.setdefault(run.task.index, []).append(run)
    for repeated in plain.values():
        typical = sorted(repeated, key=lambda run: run.seconds)[(len(repeated) - 1) // 2]
        yield _of_task(session, plan, typical, costs)


def _of_task(session: Session, plan: Plan, plain: Run, costs: Costs) -> Limits:
    statistics = plain.answer.statistics
    length = statistics.tokens
    passes = statistics.passes - 1
    if passes < 1:
        return {}
    scale = statistics.target_seconds / passes / costs.target(1)
    target = _scaled(costs.target, scale)
    on_text: dict[str, SourceOnText | None] = {}
    found: Limits = {}
    for number, candidate in enumerate(plan.candidates):
        if not plan.one_text(number):
            continue
        names = session.sources_of(candidate.drafter)
        for name in names:
            if name not in on_text:
                on_text[name] = _source(session, plan, plain, name, costs, scale)
        sources = [source for name in names if (source := on_text[name])]
        if len(sources) < len(names):
            continue
        seconds = shortest_seconds(length, target, sources, max_guesses=MOST_GUESSES)
        found[plain.task.index, number] = length / (statistics.prompt_seconds + seconds)
    return found


def _source(
    session: Session, plan: Plan, plain: Run, name: str, costs: Costs, scale: float
) -> SourceOnText | None:
    """None where its guesses or their price cannot be known: its model fails on this text, or
    cannot roll back, so that its passes could not be timed one by one.
    """
    draft = next((draft for draft in session.drafts if draft.name == name), None)
    if draft is not None and not draft.context.can_roll_back:
        return None
    drafter = session.drafter(effective_sampling(session, plan.options(None)), name)
    assert drafter is not None
    prompt = plain.task.tokens

    def chance(start: int) -> Chance:
        return RULES["coupled"].chance(plan.seed, start)

    try:
        read, prompt_seconds = None, 0.0
        if draft is not None:
            read = _scaled(costs.drafts[name], scale)
            draft.context.forget()
            if draft.borrows:  # what it missed, it need not read
                session.target.logits([*prompt, *plain.answer.tokens], last=1)
                read = CostCurve({1: read(1)})
            started = perf_counter()
            next(drafter.draft(prompt, chance(len(prompt))), None)
            prompt_seconds = max(0.0, perf_counter() - started - read(1))
        right = hits(drafter, prompt, plain.answer.tokens, chance, most=MOST_GUESSES)
    except EvaluationError:
        return None
    return SourceOnText(right, read, prompt_seconds)


def _scaled(curve: CostCurve, factor: float) -> CostCurve:
    return CostCurve({rows: seconds * factor for rows, seconds in curve.points.items()})
