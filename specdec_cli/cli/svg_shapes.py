"""The few SVG shapes that charts are made of.

Across, a place is a percentage of the plot's width, and down, it is in pixels. So a chart fits a
phone and a wide screen, and its text has the same size on both. What stands beside the plot lies
in the padding of the `svg` element, which its style sheet gives, and is placed by a shift in
pixels. Text is escaped by `Markup.format`.
"""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

MARKERS = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",  # circle, square, triangle, diamond
    "M-3.6 -3.6h7.2v7.2h-7.2Z",
    "M0 -5L4.6 3.6H-4.6Z",
    "M0 -5L5 0L0 5L-5 0Z",
)
DIAMOND = 3


def swatch(number: int, style: str) -> Markup:
    """A marker for a legend."""
    return Markup(
        '<svg class="swatch {}" width="14" height="14" viewBox="-7 -7 14 14" aria-hidden="true">'
        '<path d="{}"/></svg>'
    ).format(style, MARKERS[number % len(MARKERS)])


def chart(
    name: str, kind: str, title: str, words: str, height: float, parts: Iterable[Markup]
) -> Markup:
    """The whole picture; `words` say the same to those who cannot see it."""
    return Markup(
        '<svg class="chart {5}" role="img" aria-labelledby="{0}-title {0}-words" width="100%" '
        'height="{1:.0f}"><title id="{0}-title">{2}</title><desc id="{0}-words">{3}</desc>{4}</svg>'
    ).format(name, height, title, words, Markup("").join(parts), kind)


def titled(words: str, parts: Iterable[Markup]) -> Markup:
    """Shapes with a text that shows while one points at them."""
    return Markup("<g><title>{}</title>{}</g>").format(words, Markup("").join(parts))


def text(
    x: float, y: float, words: str, style: str, anchor: str = "start", shift: float = 0
) -> Markup:
    return Markup(
        '<text class="{}" x="{:.2f}%" y="{:.1f}" dx="{:g}" text-anchor="{}">{}</text>'
    ).format(style, x, y, shift, anchor, words)


def rectangle(x: float, y: float, width: float, height: float, style: str) -> Markup:
    return Markup(
        '<rect class="bar {}" x="{:.2f}%" y="{:.1f}" width="{:.2f}%" height="{:.1f}"/>'
    ).format(style, x, y, width, height)


def line(x0: float, y0: float, x1: float, y1: float, style: str) -> Markup:
    return Markup('<line class="{}" x1="{:.2f}%" y1="{:.1f}" x2="{:.2f}%" y2="{:.1f}"/>').format(
        style, x0, y0, x1, y1
    )


def point(x: float, y: float, marker: int, style: str) -> Markup:
    return Markup(
        '<svg class="point {}" x="{:.2f}%" y="{:.1f}" overflow="visible"><path d="{}"/></svg>'
    ).format(style, x, y, MARKERS[marker % len(MARKERS)])
