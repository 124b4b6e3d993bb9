"""What a pass of a model costs by its number of new rows, followed while it is running."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log, log2

from specdec_cli.core.cost_curve import CostCurve

LEARN_PACE = 0.15  # of a pass's surprise, how much is put down to the machine as a whole,
LEARN_ROWS = 0.25  # and how much to its number of rows; the rest was noise
SURPRISE = log(2)  # a single pass more than twice off says something about that pass alone
EXACT = 16  # rows; above, kernels have no more steps


class PassSeconds:
    """Seconds of a pass with so many new rows.

    A curve over rows times a pace. Kernels give the curve its steps, and it hardly moves; the
    pace is everything that slows all passes alike: a longer context, other programs, heat. A pass
    that took long is taken for the machine's doing first, so a background load does not bend the
    curve, and ratios between row counts, on which decisions rest, stay what they were.
    """

    def __init__(self, points: Mapping[int, float], pace: float = 1.0) -> None:
        self._points = dict(points)
        self._curve = CostCurve(self._points)
        self._known: dict[int, float] = {}
        self.pace = pace

    @property
    def points(self) -> dict[int, float]:
        """Rows -> seconds at a pace of 1."""
        return dict(self._points)

    def __call__(self, rows: int) -> float:
        """Expected seconds now."""
        if rows not in self._known:
            self._known[rows] = self._curve(rows)
        return self._known[rows] * self.pace

    def saw(self, rows: int, seconds: float) -> None:
        """Learn from one pass. Long ones are taken for their nearest power of two."""
        if seconds <= 0:
            return
        if rows > EXACT:
            nearest = 1 << round(log2(rows))
            rows, seconds = nearest, seconds * nearest / rows
        surprise = max(-SURPRISE, min(SURPRISE, log(seconds / self(rows))))
        self.pace *= exp(LEARN_PACE * surprise)
        at_pace_one = self._known[rows] * exp(LEARN_ROWS * surprise)
        if rows == 1:  # the yardstick: what one row costs at pace 1 is what pace means
            return
        self._points[rows] = at_pace_one
        self._curve = CostCurve(self._points)
        self._known.clear()
