"""A benchmark as one picture, by matplotlib."""

from __future__ import annotations

import io
import textwrap
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specdec_cli.cli.bench_figures import PARTS, acceptance_by_position, cost_curves, time_split
from specdec_cli.cli.bench_words import (
    Document,
    candidates,
    categories,
    clean,
    label,
    machine,
    model_words,
    notes,
    results_of,
    speedup_words,
)
from specdec_cli.cli.svg_charts import RATIO_TICKS
from specdec_cli.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = (".svg", ".png")
COLOURS = (
    "#0067a5", "#c8500a", "#00835f", "#a4418f", "#8a6d00",
    "#5b6470", "#b0003a", "#4b3fa6", "#2f7f8e", "#7a4b1e",
)  # fmt: skip
INK = "#1b1a18"
MARKERS = "os^D"
LONGEST, COLUMN = 26, 72  # characters of a name, and of the heading over one panel
PART_COLOURS = dict(zip(PARTS, (COLOURS[0], COLOURS[1], "#8b8b8b"), strict=True))
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e0d7",
    "legend.frameon": False,
    "svg.hashsalt": "specdec",  # the same benchmark gives the same bytes
}


def check_plot(path: Path) -> None:
    """Can a picture be made, and of that kind? To be asked before anything runs.

    Raises:
        UsageError: another suffix than .svg or .png, or matplotlib is not installed.
    """
    if path.suffix.lower() not in KINDS:
        raise UsageError(
            f"--plot cannot make {path.name}",
            why="the end of its name must say what it is: .svg or .png",
            fix=f"name it {path.stem or 'bench'}.svg",
        )
    if find_spec("matplotlib") is None:
        raise UsageError(
            "--plot needs matplotlib",
            why="it is not installed here",
            fix="pip install 'specdec-cli[plot]'",
        )


def picture(document: Document, kind: str) -> bytes:
    """Speed-up, acceptance, time and costs, as far as they were measured.

    Args:
        kind: "svg" or "png".
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    panels = _panels(document)
    columns = min(2, len(panels))
    rows = -(-len(panels) // 2)
    bars = len(categories(document)) * len(candidates(document))
    tall = max(3.4, 0.9 + 0.14 * bars)  # inches
    heights = [tall, *[3.4] * (rows - 1)]
    file = io.BytesIO()
    with rc_context(STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a name in kanji, or too long to lay out
        figure = Figure(figsize=(5.2 * columns, sum(heights) + 0.7), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False, height_ratios=heights)
        for draw, axes in zip(panels, grid.flat, strict=False):
            draw(document, axes)
        for axes in list(grid.flat)[len(panels) :]:
            axes.set_axis_off()
        heading = _heading(document, COLUMN * columns)
        figure.suptitle(_escaped(heading), fontsize=9, x=0.01, ha="left")
        metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {}
        figure.savefig(file, format=kind, dpi=150, metadata=metadata)
    return file.getvalue()


Panel = Callable[[Document, "Axes"], None]


def _panels(document: Document) -> list[Panel]:
    """Those with something to show; the first stands for a document with nothing at all."""
    found: list[Panel] = []
    if any(result["speedup"] is not None for result in document["results"]):
        found.append(_speedups)
    if acceptance_by_position(document):
        found.append(_acceptance)
    if time_split(document):
        found.append(_time)
    if cost_curves(document):
        found.append(_costs)
    return found or [_speedups]


def _heading(document: Document, width: int) -> str:
    lines = [f"{model_words(document['conditions']['target'])} on {machine(document)}"]
    lines += notes(document)[:3]
    return "\n".join(textwrap.fill(line, width, max_lines=2, placeholder=" …") for line in lines)


def _speedups(document: Document, axes: Axes) -> None:
    """As on the page: a logarithmic scale, where 0.5 and 2 are as far from 1."""
    named, kinds = candidates(document), categories(document)
    height = 0.8 / max(1, len(named))
    shown: list[Any] = []
    limits: list[tuple[float, float]] = []
    for i, candidate in enumerate(named):
        rows = [row for row in results_of(document, candidate) if row["speedup"] is not None]
        places = [kinds.index(row["category"]) + (i + 0.5) * height - 0.4 for row in rows]
        values = [row["speedup"] for row in rows]
        bounds = [row["speedup_ci"] or [row["speedup"]] * 2 for row in rows]
        widths = [value - 1 for value in values]
        name = _short(label(document, candidate))
        colour = COLOURS[i % len(COLOURS)]
        shown.append(axes.barh(places, widths, height, left=1, color=colour, label=name))
        for place, bound in zip(places, bounds, strict=True):
            axes.plot(bound, [place] * 2, color=INK, linewidth=1)
        limits += [
            (row["oracle_speedup"], place)
            for row, place in zip(rows, places, strict=True)
            if row["oracle_speedup"] is not None
        ]
    if limits:
        across, down = zip(*limits, strict=True)
        shown += axes.plot(across, down, "D", mfc="none", mec=INK, ms=4, label="limit")
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    low, high = max(RATIO_TICKS[0], min(low, 0.85)), min(RATIO_TICKS[-1], max(high, 1.2))
    axes.set_xlim(low, high)
    ticks = [tick for tick in RATIO_TICKS if low <= tick <= high]
    axes.set_xticks(ticks, [f"{tick:g}x" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_yticks(range(len(kinds)), [_short(clean(kind)) for kind in kinds])
    axes.invert_yaxis()
    axes.axvline(1, color=INK, linewidth=1)
    axes.grid(False, axis="y")
    axes.set_title(speedup_words(document).capitalize())
    _legend(axes, shown)


def _acceptance(document: Document, axes: Axes) -> None:
    order = candidates(document)
    lines = acceptance_by_position(document)
    for candidate, shares in lines.items():
        i = order.index(candidate)
        axes.plot(
            range(1, len(shares) + 1),
            [100 * share for share in shares],
            marker=MARKERS[i % len(MARKERS)],
            color=COLOURS[i % len(COLOURS)],
            label=_short(label(document, candidate)),
            zorder=3 - len(shares) / 100,  # the short ones stay in sight
        )
    axes.set_ylim(0, 100)
    longest = max(map(len, lines.values()))
    axes.set_xticks(range(1, longest + 1, 1 + longest // 10))
    axes.set_xlabel("position in the draft")
    axes.set_title("Accepted guesses, %")
    _legend(axes)


def _time(document: Document, axes: Axes) -> None:
    bars = time_split(document)
    names = [_short(name) for name, _ in bars]
    left = [0.0] * len(bars)
    for part in PARTS:
        seconds = [parts[part] / 1e3 for _, parts in bars]
        axes.barh(range(len(bars)), seconds, left=left, color=PART_COLOURS[part], label=part)
        left = [start + more for start, more in zip(left, seconds, strict=True)]
    axes.set_yticks(range(len(bars)), names)
    axes.invert_yaxis()
    axes.grid(False, axis="y")
    axes.set_xlim(0, 1.03 * max(left) or 1)
    axes.set_title("Seconds an answer, after its prompt")
    _legend(axes)


def _costs(document: Document, axes: Axes) -> None:
    by_name = cost_curves(document)
    for i, (name, curve) in enumerate(by_name.items()):
        axes.plot(
            list(curve),
            list(curve.values()),
            marker=MARKERS[i % len(MARKERS)],
            color=COLOURS[i % len(COLOURS)],
            label=_short(clean(name)),
        )
    target = by_name["target"]
    axes.set_ylim(0, 1.1 * max(ms for curve in by_name.values() for ms in curve.values()))
    ends = (1, max(target))
    axes.plot(ends, [rows * target[1] for rows in ends], "--", color="#8d877b", label="one by one")
    axes.set_xlabel("rows checked in one pass")
    axes.set_title("Milliseconds a pass")
    _legend(axes)


def _legend(axes: Axes, shown: Sequence[Any] | None = None) -> None:
    """Under the panel, where it hides nothing."""
    from matplotlib.transforms import offset_copy

    handles = axes.get_legend_handles_labels()[0] if shown is None else shown
    longest = max((len(str(handle.get_label())) for handle in handles), default=0)
    under = offset_copy(axes.transAxes, axes.get_figure(root=True), y=-34, units="points")
    axes.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0, 0),
        bbox_transform=under,
        borderaxespad=0,
        fontsize=8,
        ncols=max(1, min(4, COLUMN // (longest + 6))),
        columnspacing=1.2,
    )


def _short(text: str) -> str:
    return _escaped(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")


def _escaped(text: str) -> str:
    """A dollar sign would begin a formula, and a leading underscore hide a name."""
    return text.replace("$", r"\$").lstrip("_")
