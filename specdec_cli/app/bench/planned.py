"""What speculation would give at a made-up acceptance, by what passes cost here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specdec_cli.app.bench.costs import MOST_GUESSES, Costs
from specdec_cli.app.bench.document import frame, named, summary
from specdec_cli.app.bench.plan import Candidate, Plan
from specdec_cli.app.generate import AUTO
from specdec_cli.core.cost_curve import CostCurve, speedup

SYNTHETIC = "synthetic"  # the one category of such a document


def planned(
    conditions: Mapping[str, Any], plan: Plan, costs: Costs, acceptance: float
) -> dict[str, Any]:
    """What the cost curve would give at a made-up acceptance; nothing is generated."""
    results = []
    plain = 1 / costs.target(1)
    for candidate in plan.candidates:
        gain = _gain(costs, candidate, acceptance)
        results.append(
            {
                "category": SYNTHETIC,
                **named(candidate),
                **_nothing_measured(),
                "plain_tps": plain,
                "tps": plain * gain,
                "speedup": gain,
                "draft_acceptance_rate": acceptance,
                "decision": "computed from the measured costs, not run",
            }
        )
    candidates = [
        {
            **{key: result[key] for key in ("drafter", "k", "accept")},
            "speedup_geomean": result["speedup"],
            "speedup_ci": None,
            "worst_category": SYNTHETIC,
            "worst_speedup": result["speedup"],
            "oracle_geomean": None,
            "of_oracle": None,
        }
        for result in results
    ]
    return {
        **frame(conditions, True, [costs]),
        "results": results,
        "summary": summary(candidates),
        "skipped": [],
        "runs": [],
    }


def _gain(costs: Costs, candidate: Candidate, acceptance: float) -> float:
    """With k guesses a round; `auto`: with the best number, none included, and the best draft."""
    k = candidate.draft_tokens
    drafts: list[CostCurve | None] = [costs.drafts.get(candidate.drafter)]
    if candidate.drafter == AUTO and costs.drafts:
        drafts = [*costs.drafts.values()]
    return max(
        speedup(costs.target, draft, length, acceptance)
        for draft in drafts
        for length in ([k] if k is not None else range(MOST_GUESSES + 1))
    )


def _nothing_measured() -> dict[str, Any]:
    names = (
        "plain_spread", "spread", "speedup_ci", "mean_acceptance_length",
        "acceptance_per_position", "acceptance_histogram", "draft_ms", "target_ms", "other_ms",
        "draft_share", "first_token_ms", "plain_first_token_ms", "identical", "first_difference",
        "oracle_tps", "oracle_speedup", "of_oracle",
    )  # fmt: skip
    return {"prompts": 0, "pairs": 0, **dict.fromkeys(names)}
