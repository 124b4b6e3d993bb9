"""Charts as inline SVG, by hand: no library, no script, nothing to fetch."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from specdec_cli.cli import svg_shapes as svg

GUTTER, MARGIN = 112, 52  # pixels of padding beside bars: for labels, and for figures
TOP, PLOT, BOTTOM = 26, 240, 40  # pixels above, of and below the plot of a line chart
BAR, GAP, HEADING, WIDE_BAR = 11, 6, 20, 22  # pixels
LABEL, LINE = 16, 14  # characters of a label's line, and pixels from one to the next
RATIO_TICKS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50)


@dataclass(frozen=True, slots=True)
class Ratio:
    """A bar from 1 to `value`, with its interval, and the limit where there is one."""

    label: str
    value: float
    interval: tuple[float, float] | None
    limit: float | None
    words: str

    @property
    def style(self) -> str:
        """Colour says what can be said beyond noise."""
        low, high = self.interval or (self.value, self.value)
        return "faster" if low > 1 else "slower" if high < 1 else "unclear"


@dataclass(frozen=True, slots=True)
class Stack:
    """A bar of parts by the name of their class, with a figure at its end."""

    label: str
    parts: Mapping[str, float]
    figure: str
    words: str


@dataclass(frozen=True, slots=True)
class Series:
    """A line through points, with the class of its colour and the number of its marker."""

    points: Sequence[tuple[float, float]]
    style: str
    marker: int
    name: str


def ratio_chart(name: str, title: str, groups: Sequence[tuple[str, Sequence[Ratio]]]) -> Markup:
    """Bars to the left and right of 1 on a logarithmic scale, where 0.5 and 2 are as far from it.

    A group has a heading, or "" for none.
    """
    bars = [bar for _, group in groups for bar in group]
    ends = [end for bar in bars for end in (bar.value, bar.limit, *(bar.interval or ())) if end]
    low = max(RATIO_TICKS[0], min(0.85, *ends) / 1.06)
    high = min(RATIO_TICKS[-1], max(1.2, *ends) * 1.06)

    def x(value: float) -> float:
        inside = min(max(value, low), high)
        return 100 * math.log(inside / low) / math.log(high / low)

    parts, y = [], float(TOP)
    for heading, group in groups:
        if heading:
            parts.append(svg.text(0, y + 11, heading, "heading", shift=-GUTTER))
            y += HEADING
        for bar in group:
            height = _label_height(bar.label)
            y += (height - BAR) / 2
            parts += [_label(bar.label, y + BAR / 2), _ratio(bar, x, y)]
            y += (height + BAR) / 2 + GAP
        y += 2 * GAP if heading else 0
    bottom = y + 2
    grid = []
    for tick in _spread([tick for tick in RATIO_TICKS if low <= tick <= high], x, apart=9):
        grid.append(svg.line(x(tick), TOP - 8, x(tick), bottom, "one" if tick == 1 else "grid"))
        grid.append(svg.text(x(tick), bottom + 16, f"{tick:g}×", "tick", "middle"))
    sides = [
        svg.text(x(1), 12, "← slower", "tick", "end", -8),
        svg.text(x(1), 12, "faster →", "tick", shift=8),
    ]
    words = "; ".join(bar.words for bar in bars)
    return svg.chart(name, "bars", title, words, bottom + 24, [*grid, *sides, *parts])


def stack_chart(name: str, title: str, stacks: Sequence[Stack]) -> Markup:
    """Bars of parts, all on one scale from 0."""
    longest = max(sum(stack.parts.values()) for stack in stacks) or 1
    parts, y = [], 4.0
    for stack in stacks:
        left, pieces = 0.0, []
        for part, size in stack.parts.items():
            width = 100 * size / longest
            pieces.append(svg.rectangle(left, y, width, WIDE_BAR, part))
            left += width
        label = _label(stack.label, y + WIDE_BAR / 2)
        figure = svg.text(100, y + WIDE_BAR / 2 + 4, stack.figure, "value", "end", MARGIN)
        parts += [label, svg.titled(stack.words, pieces), figure]
        y += WIDE_BAR + 10
    words = "; ".join(stack.words for stack in stacks)
    return svg.chart(name, "bars", title, words, y, parts)


def line_chart(
    name: str,
    title: str,
    series: Sequence[Series],
    *,
    axes: tuple[str, str],
    ticks: Sequence[float],
    unit: str,
    reference: tuple[tuple[float, float], tuple[float, float]] | None = None,
) -> Markup:
    """Points joined by lines; down to 0, up to the last tick.

    Args:
        axes: what is across and what is up.
        ticks: up, from 0.
        reference: the ends of a dashed line to compare with; cut where it leaves the plot.
    """
    xs = sorted({x for one in series for x, _ in one.points})
    first, last = xs[0], max(xs[-1], xs[0] + 1)

    def x(value: float) -> float:
        return 2 + 98 * (value - first) / (last - first)

    def y(value: float) -> float:
        return TOP + PLOT * (1 - min(max(value / ticks[-1], 0.0), 1.0))

    parts = [
        svg.text(0, 12, axes[1], "tick"),
        svg.text(100, TOP + PLOT + 36, axes[0], "tick", "end"),
    ]
    for tick in ticks:
        parts.append(svg.line(0, y(tick), 100, y(tick), "grid" if tick else "one"))
        parts.append(svg.text(0, y(tick) + 4, f"{tick:g}", "tick", "end", -8))
    for tick in _spread(xs, x, apart=6):
        parts.append(svg.text(x(tick), TOP + PLOT + 18, f"{tick:g}", "tick", "middle"))
    if reference is not None:
        (x0, y0), (x1, y1) = reference[0], _cut(*reference, ticks[-1])
        parts.append(svg.line(x(x0), y(y0), x(x1), y(y1), "line reference"))
    for one in sorted(series, key=lambda one: -len(one.points)):  # the short ones stay in sight
        for (x0, y0), (x1, y1) in pairwise(one.points):
            parts.append(svg.line(x(x0), y(y0), x(x1), y(y1), f"line {one.style}"))
        for at, value in one.points:
            words = f"{one.name}, {at:g}: {value:.3g}{unit}"
            parts.append(svg.titled(words, [svg.point(x(at), y(value), one.marker, one.style)]))
    words = "; ".join(
        f"{one.name}: " + ", ".join(f"{at:g}: {value:.3g}{unit}" for at, value in one.points)
        for one in series
    )
    return svg.chart(name, "lines", title, words, TOP + PLOT + BOTTOM, parts)


def ticks_to(top: float) -> list[float]:
    """0 and round numbers, the last of them `top` (above 0) or more."""
    power = 10.0 ** math.floor(math.log10(top / 6))
    step = next(power * nice for nice in (1, 2, 2.5, 5, 10, 20) if 6 * power * nice >= top)
    return [step * i for i in range(math.ceil(top / step) + 1)]


def _ratio(bar: Ratio, x: Callable[[float], float], y: float) -> Markup:
    left, right = sorted((x(1), x(bar.value)))
    middle = y + BAR / 2
    pieces = [svg.rectangle(left, y, right - left, BAR, bar.style)]
    if bar.interval:
        low, high = map(x, bar.interval)
        pieces.append(svg.line(low, middle, high, middle, "whisker"))
        pieces += [svg.line(end, middle - 3, end, middle + 3, "whisker") for end in (low, high)]
    if bar.limit:
        pieces.append(svg.point(x(bar.limit), middle, svg.DIAMOND, "limit"))
    pieces.append(svg.text(100, middle + 4, f"{bar.value:.2f}×", "value", "end", MARGIN))
    return svg.titled(bar.words, pieces)


def _lines(label: str) -> list[str]:
    return textwrap.wrap(label, LABEL, max_lines=2, placeholder="…")


def _label_height(label: str) -> float:
    return BAR + LINE * (len(_lines(label)) - 1)


def _label(label: str, middle: float) -> Markup:
    """One or two lines beside a bar."""
    lines = _lines(label)
    top = middle + 4 - LINE * (len(lines) - 1) / 2
    texts = [
        svg.text(0, top + LINE * i, part, "label", shift=-GUTTER) for i, part in enumerate(lines)
    ]
    return svg.titled(label, texts)


def _cut(start: tuple[float, float], end: tuple[float, float], top: float) -> tuple[float, float]:
    """Where a rising line ends, or leaves the plot."""
    (x0, y0), (x1, y1) = start, end
    return end if y1 <= top else (x0 + (x1 - x0) * (top - y0) / (y1 - y0), top)


def _spread(values: Sequence[float], x: Callable[[float], float], apart: float) -> list[float]:
    """Those whose texts do not touch; 1 is always among them."""
    kept = [value for value in values if value == 1]
    for value in values:
        if all(abs(x(value) - x(other)) >= apart for other in kept):
            kept.append(value)
    return kept
