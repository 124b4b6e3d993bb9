"""A benchmark as one JSON document: what `--save` keeps and everything is drawn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specdec_cli.app.bench.costs import Costs
from specdec_cli.app.bench.limit import Limits
from specdec_cli.app.bench.measure import Run
from specdec_cli.app.bench.plan import Candidate, Plan
from specdec_cli.app.bench.saved import SCHEMA
from specdec_cli.app.bench.summarise import Row, per_position, rows, totals
from specdec_cli.app.report import speculation, timings, usage
from specdec_cli.core.cost_curve import CostCurve
from specdec_cli.core.resampling import geometric_mean

Gaps = Mapping[tuple[int, int], float]
"""Top-2 gap of the plain logits by (task index, position)."""


def document(
    conditions: Mapping[str, Any],
    plan: Plan,
    runs: Sequence[Run],
    *,
    costs: Sequence[Costs],
    limits: Limits,
    gaps: Gaps,
    skipped: Sequence[Mapping[str, Any]],
    complete: bool,
) -> dict[str, Any]:
    """Everything that was measured."""
    found = rows(plan, runs)
    results = [_result(plan, row, limits, gaps) for row in found]
    candidates = [
        {
            **named(plan.candidates[total.candidate]),
            "speedup_geomean": total.speedup,
            "speedup_ci": total.interval,
            "worst_category": total.worst.category,
            "worst_speedup": total.worst.speedup,
            **_oracle(
                [
                    result
                    for row, result in zip(found, results, strict=True)
                    if row.candidate == total.candidate
                ]
            ),
        }
        for total in totals(plan, found)
    ]
    return {
        **frame(conditions, complete, costs),
        "results": results,
        "summary": summary(candidates),
        "skipped": list(skipped),
        "runs": [_run(run) for run in runs],
    }


def measured_costs(
    conditions: Mapping[str, Any], costs: Sequence[Costs], *, complete: bool
) -> dict[str, Any]:
    """Cost curves alone."""
    return {
        **frame(conditions, complete, costs),
        "results": [],
        "summary": summary([]),
        "skipped": [],
        "runs": [],
    }


def frame(conditions: Mapping[str, Any], complete: bool, costs: Sequence[Costs]) -> dict[str, Any]:
    """What every document begins with."""
    depths = [_costs(of_depth) for of_depth in costs]
    return {
        "schema": SCHEMA,
        "complete": complete,
        "conditions": dict(conditions),
        "costs": depths[0] if depths else None,
        "cost_depths": depths,
    }


def summary(candidates: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The candidates over all kinds of work, and the best of them."""
    speeds = [candidate["speedup_geomean"] for candidate in candidates]
    best = max(range(len(speeds)), key=speeds.__getitem__) if speeds else None
    return {
        "candidates": list(candidates),
        "best": best,
        "speedup_geomean": None if best is None else speeds[best],
    }


def named(candidate: Candidate) -> dict[str, Any]:
    """What tells a candidate from the others."""
    return {
        "drafter": candidate.drafter,
        "k": candidate.k,
        "accept": candidate.rule,
    }


def _result(plan: Plan, row: Row, limits: Limits, gaps: Gaps) -> dict[str, Any]:
    counts = row.counts
    candidate = plan.candidates[row.candidate]
    most = candidate.draft_tokens or len(counts.histogram) - 1
    tasks = [task.index for task in plan.tasks if task.category == row.category]
    known = [limits[index, row.candidate] for index in tasks if (index, row.candidate) in limits]
    oracle = geometric_mean(known) if len(known) == row.prompts else None
    found = row.first_difference
    return {
        "category": row.category,
        **named(candidate),
        "prompts": row.prompts,
        "pairs": row.pairs,
        "plain_tps": row.plain_tps,
        "tps": row.tps,
        "plain_spread": row.plain_spread,
        "spread": row.spread,
        "speedup": row.speedup,
        "speedup_ci": row.interval,
        "draft_acceptance_rate": counts.acceptance_rate,
        "mean_acceptance_length": counts.mean_acceptance_length,
        "acceptance_per_position": per_position(counts, most) if counts.drafts else None,
        "acceptance_histogram": counts.histogram if counts.drafts else None,
        "draft_ms": counts.draft_seconds * 1e3 / row.pairs,
        "target_ms": counts.target_seconds * 1e3 / row.pairs,
        "other_ms": counts.other_seconds * 1e3 / row.pairs,
        "draft_share": counts.draft_share,
        "first_token_ms": _milliseconds(row.first_token_seconds),
        "plain_first_token_ms": _milliseconds(row.plain_first_token_seconds),
        "identical": row.identical,
        "first_difference": None
        if found is None
        else {
            "prompt": found.task.index,
            "position": found.position,
            "tokens": list(found.tokens),
            "gap": gaps.get((found.task.index, found.position)),
        },
        "oracle_tps": oracle,
        "oracle_speedup": oracle / row.plain_tps if oracle else None,
        "of_oracle": row.tps / oracle if oracle else None,
        "decision": row.decision,
    }


def _oracle(results: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Over all kinds of work, where the limit is known for every one of them."""
    speeds = [result["oracle_speedup"] for result in results]
    shares = [result["of_oracle"] for result in results]
    known = all(speed is not None for speed in speeds)
    return {
        "oracle_geomean": geometric_mean(speeds) if known else None,
        "of_oracle": geometric_mean(shares) if known else None,
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        "prompt": run.task.index,
        "category": run.task.category,
        "repetition": run.repetition,
        "candidate": run.candidate,
        "usage": usage(run.answer),
        "timings": timings(run.answer),
        "speculative_decoding": speculation(run.answer),
        "finish_reason": run.answer.finish,
        "tokens": list(run.answer.tokens),
    }


def _costs(costs: Costs) -> dict[str, Any]:
    """The first model draft is `draft`, as the contract names it; others have their own names.

    What a draft takes to read a long text is left out: these are passes of drafting.
    """
    widest = max(costs.target.points)
    named = {"draft" if name == "model" else name: c for name, c in costs.drafts.items()}
    return {
        "context": costs.context,
        "target": _curve(costs.target, widest),
        **{name: _curve(curve, widest) for name, curve in named.items()},
    }


def _curve(curve: CostCurve, widest: int) -> dict[str, float]:
    points = sorted(curve.points.items())
    return {str(rows): seconds * 1e3 for rows, seconds in points if rows <= widest}


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3
