"""A benchmark as bars in a terminal of 40 columns or more, whatever characters it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from specdec_cli.cli.bench_costs import curves, depths
from specdec_cli.cli.bench_words import (
    Document,
    candidates,
    categories,
    clean,
    decimal,
    factor,
    interval,
    key,
    label,
    results_of,
    speedup_words,
)

FASTER, SLOWER, UNCLEAR = "green", "red", "yellow"
WIDEST, NARROWEST = 48, 10  # columns of a bar


@dataclass(frozen=True, slots=True)
class Line:
    """One bar: solid up to `sure`, thin up to `value`; `mark` is what to compare it with."""

    label: str
    sure: float
    value: float
    mark: float | None
    figures: str
    colour: str = ""


@dataclass(frozen=True, slots=True)
class Bars:
    """Groups of bars on one scale, under a title."""

    title: str
    groups: tuple[tuple[str, tuple[Line, ...]], ...]  # a heading ("" for none) and its bars

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        plain = options.ascii_only
        lines = [line for _, group in self.groups for line in group]
        if not lines:
            return
        top = max(max(line.value, line.mark or 0) for line in lines)
        figures = max(cell_len(line.figures) for line in lines)
        labels = max(cell_len(line.label) for line in lines)
        labels = min(labels, max(1, options.max_width - figures - NARROWEST - 2))
        width = max(1, min(WIDEST, options.max_width - labels - figures - 2))
        yield Text(self.title, style="bold")
        for heading, group in self.groups:
            if heading:
                yield _line(heading)
            for line in group:
                row = _line(_cut(line.label, labels, plain) + " ")
                row.append(_bar(line, width, top, plain), style=line.colour)
                row.append(f" {line.figures.rjust(figures)}")
                yield row


def speedup_bars(document: Document) -> Bars:
    """Every category and candidate against plain decoding, which is the mark at 1.0x."""
    named = candidates(document)
    title = f"{speedup_words(document)} (mark: 1.0x)"
    if len(named) == 1:
        lines = [
            _speedup(clean(result["category"]), result)
            for result in results_of(document, named[0])
            if result["speedup"] is not None
        ]
        return Bars(f"{label(document, named[0])}: {title}", (("", tuple(lines)),))
    groups = []
    for category in categories(document):
        group = [
            _speedup(f"  {label(document, key(result))}", result)
            for result in document["results"]
            if result["category"] == category and result["speedup"] is not None
        ]
        if group:
            groups.append((clean(category), tuple(group)))
    return Bars(title, tuple(groups))


def cost_bars(document: Document) -> list[Bars]:
    """v(n) of every model at every depth; the mark is n single passes, where it is in sight."""
    return [bars for costs in depths(document) for bars in _cost_bars(costs)]


def _cost_bars(costs: Mapping[str, Any]) -> Iterator[Bars]:
    for name, curve in curves(costs).items():
        top = max(curve.values())
        lines = [
            Line(
                f"{rows:>3}",
                ms,
                ms,
                rows * curve[1] if rows * curve[1] <= top else None,
                f"{decimal(ms)} ms {factor(ms / curve[1])}",
            )
            for rows, ms in curve.items()
        ]
        title = f"{clean(name)}: one pass by rows, context {costs['context']} (mark: one by one)"
        yield Bars(title, (("", tuple(lines)),))


def _speedup(name: str, result: Mapping[str, Any]) -> Line:
    bounds = result["speedup_ci"]
    low, high = bounds or (result["speedup"], result["speedup"])
    colour = FASTER if low > 1 else SLOWER if high < 1 else UNCLEAR
    figures = factor(result["speedup"])
    if bounds:
        figures += f" {interval(bounds)}"
    return Line(name, low, high, 1.0, figures, colour)


def _bar(line: Line, width: int, top: float, plain: bool) -> str:
    """`█████│██▒▒` or, for a stream without such characters, `=====|==--`."""
    solid, thin, mark = ("=", "-", "|") if plain else ("█", "▒", "│")

    def cells(value: float) -> int:
        return min(width, round(width * value / top))

    sure, end = max(1, cells(line.sure)), cells(line.value)
    bar = (solid * sure + thin * (end - sure)).ljust(width)
    if line.mark is None:
        return bar
    at = min(width - 1, cells(line.mark))
    return bar[:at] + mark + bar[at + 1 :]


def _cut(text: str, width: int, plain: bool) -> str:
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return set_cell_size(text, width - 1) + ("~" if plain else "…")


def _line(text: str) -> Text:
    return Text(text, no_wrap=True, overflow="crop")
