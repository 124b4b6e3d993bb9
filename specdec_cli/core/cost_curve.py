"""What a pass costs by its number of rows, and what speculation can gain from that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class CostCurve:
    """Seconds of one pass with so many new rows, from measured points (rows -> seconds).

    Between two points the curve is a straight line, and below the first it is level: fewer rows
    never cost more. Beyond the last it goes on with the slope of the last segment: with that many
    rows a pass is bound by arithmetic, and every further row costs the same again. A level line
    there would give rows away. Where noise makes the last segment fall, the line stays level.

    Raises:
        ValueError: no points.
    """

    points: Mapping[int, float]

    def __post_init__(self) -> None:
        if not self.points:
            raise ValueError("a cost curve needs at least one measured point")

    def __call__(self, rows: int) -> float:
        counts = sorted(self.points)
        seconds = [self.points[count] for count in counts]
        if rows <= counts[-1] or len(counts) == 1:
            return float(np.interp(rows, counts, seconds))
        slope = (seconds[-1] - seconds[-2]) / (counts[-1] - counts[-2])
        return seconds[-1] + max(0.0, slope) * (rows - counts[-1])


def speedup(verify: CostCurve, draft: CostCurve | None, k: int, acceptance: float) -> float:
    """Speed with k guesses a round over plain speed, if each guess stands with `acceptance`.

    The expected tokens of a round over its expected time, in plain passes (Leviathan et al. 2023,
    arXiv 2211.17192, theorem 3.8, with measured costs in place of their one constant):

        (1 + S_1 + ... + S_k) v(1) / (d(k) + v(k+1)),   S_i = acceptance ** i

    d(k) = k draft(1) + S_k (draft(2) - draft(1)). The first guess's pass reads what the draft has
    not seen. After a rejection that is one token, the target's own. After a round that was
    accepted whole it is two, because nothing was drafted after the last guess, so the draft has
    not read that one either. A share S_k of the rounds follow such a round.

    Args:
        verify: of the target, v(rows).
        draft: of the draft, reading so many tokens and guessing once; None: guesses are free.
        k: guesses in every round, 0 or more.
        acceptance: probability that a guess stands if those before it do, 0 to 1.
    """
    if k == 0:
        return 1.0
    whole = acceptance**k
    tokens = sum(acceptance**i for i in range(k + 1))
    drafting = k * draft(1) + whole * (draft(2) - draft(1)) if draft else 0.0
    return tokens * verify(1) / (drafting + verify(k + 1))


def break_even(verify: CostCurve, draft: CostCurve | None, k: int) -> float | None:
    """The acceptance at which k guesses a round are as fast as none.

    `speedup` grows with acceptance as long as draft(2) - draft(1) <= k draft(1) + v(k+1), which
    any draft worth the name meets, so halving the interval finds the one crossing.

    Returns:
        Between 0 and 1; None where even a draft that is always right loses.
    """
    if speedup(verify, draft, k, 1.0) < 1:
        return None
    low, high = 0.0, 1.0
    if speedup(verify, draft, k, low) >= 1:
        return low
    for _ in range(40):  # to 1e-12
        middle = (low + high) / 2
        if speedup(verify, draft, k, middle) < 1:
            low = middle
        else:
            high = middle
    return high
