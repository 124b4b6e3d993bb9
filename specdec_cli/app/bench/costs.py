"""What a pass costs here: v(n) of the target, and of every draft."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specdec_cli.app.prompts import built_in
from specdec_cli.app.session import Session
from specdec_cli.core.cost_curve import CostCurve
from specdec_cli.engine.calibration import pass_seconds

ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 24, 32)
ALL_ROWS = (*range(1, 17), 24, 32)
DRAFT_ROWS = (1, 2, 3, 4, 8, 16, 32, 128)  # it reads what it missed, then guesses one by one
MOST_GUESSES = ROWS[-1] - 1


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """Seconds of a pass by its new rows, at one depth of the context.

    Attributes:
        target: all rows are read, as verification does.
        drafts: by drafter; only the last row is read, as drafting does.
    """

    context: int
    target: CostCurve
    drafts: dict[str, CostCurve]


def measure_costs(
    session: Session,
    context: int,
    *,
    rows: Sequence[int] = ROWS,
    draft_rows: Sequence[int] = DRAFT_ROWS,
    repetitions: int = 3,
) -> Costs:
    """Medians of passes after `context` tokens, as wide as there is room for behind them.

    The session's target must have been loaded with room for the widest pass.
    """
    room = session.context_size - context
    text = " ".join(entry.prompt for entry in built_in("bench"))
    target = pass_seconds(
        session.target,
        [count for count in rows if count <= room],
        context=context,
        read="all",
        repetitions=repetitions,
        tokens=session.model.vocabulary.tokenize(text, special=False),
    )
    drafts = {}
    for draft in session.drafts:
        drafts[draft.name] = CostCurve(
            pass_seconds(
                draft.context,
                [count for count in draft_rows if count <= room],
                context=context,
                read="last",
                repetitions=repetitions,
                tokens=draft.model.vocabulary.tokenize(text, special=False),
            )
        )
    return Costs(context, CostCurve(target), drafts)
