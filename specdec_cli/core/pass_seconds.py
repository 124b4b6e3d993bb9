"""What a pass of a model costs by its number of new rows, followed while it is running."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log, log2

from specdec_cli.core.cost_curve import CostCurve

LEARN_PACE = 0.2  # of a pass's surprise, how much is put down to the machine as a whole
LEARN_ROWS = 0.03  # and how much at least to its number of rows, the more the fewer were seen
MEASURED = 8  # passes that a point known from the start is worth
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
        self._seen = dict.fromkeys(self._points, MEASURED)
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
        if rows == 1:  # the yardstick: what one row costs at pace 1 is what pace means
            return
        seen = self._seen[rows] = self._seen.get(rows, 0) + 1
        self._points[rows] = self._known[rows] * exp(max(LEARN_ROWS, 1 / (seen + 1)) * surprise)
        self._curve = CostCurve(self._points)
        self._known.clear()
