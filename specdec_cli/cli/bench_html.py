"""A benchmark as one self-contained page: to look at, to print and to share."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from statistics import fmean, geometric_mean
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from specdec_cli.cli import svg_charts as charts
from specdec_cli.cli import svg_shapes as svg
from specdec_cli.cli.bench_conditions import conditions
from specdec_cli.cli.bench_costs import cost_tables
from specdec_cli.cli.bench_figures import PARTS, acceptance_by_position, cost_curves, time_split
from specdec_cli.cli.bench_words import (
    NONE,
    Document,
    candidates,
    categories,
    clean,
    decimal,
    drafter_words,
    duration,
    factor,
    interval,
    key,
    label,
    machine,
    model_words,
    notes,
    percent,
    results_of,
    same_text,
    speedup_words,
    verdict,
)

TIMES, DASH = "×", "–"
COLOURS = 10  # classes c0 to c9 of the style sheet


def html(document: Document) -> str:
    """The page. It asks for nothing from outside, and every name in it is escaped."""
    data = files("specdec_cli.cli") / "data"
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string((data / "bench.html").read_text("utf-8"))
    described = conditions(document)
    return template.render(
        style=Markup((data / "bench.css").read_text("utf-8")),
        verdict=verdict(document),
        target=model_words(document["conditions"]["target"]),
        drafters=_drafters(document),
        machine=machine(document),
        date=clean(document["conditions"]["date"])[:10],
        notes=notes(document),
        synthetic=document["conditions"]["synthetic_acceptance"] is not None,
        figures=_key_figures(document),
        legend=[
            (svg.swatch(i, _colour(i)), label(document, candidate))
            for i, candidate in enumerate(candidates(document))
        ],
        limit_marker=svg.swatch(svg.DIAMOND, "limit"),
        speedups=_speedups(document),
        speedup_words=speedup_words(document),
        acceptance=_acceptance(document),
        time=_time(document),
        parts=PARTS,
        costs=_costs(document),
        cost_legend=[
            (svg.swatch(i, _colour(i)), clean(name)) for i, name in enumerate(cost_curves(document))
        ],
        cost_tables=[
            (costs.context, costs.header, [_dashed(line) for line in costs.lines])
            for costs in cost_tables(document, TIMES)
        ],
        groups=[
            [_row(document, row) for row in document["results"] if row["category"] == category]
            for category in categories(document)
        ],
        conditions=described,
        version=clean(document["conditions"]["versions"].get("specdec", "")),
    )


def _drafters(document: Document) -> str:
    drafts = [draft["drafter"] for draft in document["conditions"]["drafts"]]
    tried = [drafter for drafter, _, _ in candidates(document) if drafter != "auto"]
    return ", ".join(drafter_words(document, name) for name in dict.fromkeys([*drafts, *tried]))


def _key_figures(document: Document) -> list[tuple[str, str, str]]:
    """Name, figure, and what it means, of the best candidate."""
    summary = document["summary"]
    if summary["best"] is None:
        return []
    best = summary["candidates"][summary["best"]]
    rows = [row for row in results_of(document, key(best)) if row["speedup"] is not None]
    measured = document["conditions"]["synthetic_acceptance"] is None
    found = []
    if best["speedup_geomean"] is not None:
        between = interval(best["speedup_ci"], " to ")
        found.append(
            (
                "Speed-up" if measured else "Synthetic speed-up",
                factor(best["speedup_geomean"], TIMES),
                f"{label(document, key(best))}" + (f", 95% interval {between}" if between else ""),
            )
        )
    if rows and all(row["plain_tps"] and row["tps"] for row in rows):
        plain, drafted = (geometric_mean(row[of] for row in rows) for of in ("plain_tps", "tps"))
        found.append(
            (
                "Tokens per second",
                f"{decimal(plain)} → {decimal(drafted)}",
                "plain → drafted, reading the prompt included" if measured else "computed",
            )
        )
    if len(rows) > 1:
        top, low = (of(rows, key=lambda row: row["speedup"]) for of in (max, min))
        found.append(
            (
                "Worst to best work",
                f"{factor(low['speedup'], '')}{DASH}{factor(top['speedup'], TIMES)}",
                f"{clean(low['category'])} to {clean(top['category'])}",
            )
        )
    shares = [row["draft_acceptance_rate"] for row in rows]
    lengths = [row["mean_acceptance_length"] for row in rows]
    if shares and None not in shares:
        meaning = "mean of all work" if measured else "made up"
        if None not in lengths:
            meaning += f", {fmean(lengths):.1f} tokens a round"
        found.append(("Guesses accepted", percent(fmean(shares)), meaning))
    if promised := [row["identical"] for row in rows if row["identical"] is not None]:
        found.append(
            (
                "Same text as plain",
                f"{sum(promised)} of {len(promised)}",
                "kinds of work, every token compared",
            )
        )
    if best["of_oracle"] is not None:
        found.append(
            (
                "Of the limit",
                percent(best["of_oracle"]),
                f"an oracle would reach {factor(best['oracle_geomean'], TIMES)}",
            )
        )
    return found


def _speedups(document: Document) -> Markup | None:
    """Bars named by candidate under each kind of work; by kind where there is one candidate."""
    several = len(candidates(document)) > 1
    groups: list[tuple[str, list[charts.Ratio]]] = [] if several else [("", [])]
    for category in categories(document):
        rows = [
            row
            for row in document["results"]
            if row["category"] == category and row["speedup"] is not None
        ]
        if several and rows:
            groups.append((clean(category), []))
        for row in rows:
            name = label(document, key(row))
            bounds = row["speedup_ci"]
            between = f" ({interval(bounds, ' to ')})" if bounds else ""
            words = f"{clean(category)}, {name}: {factor(row['speedup'], TIMES)}{between}"
            if row["oracle_speedup"]:
                words += f", limit {factor(row['oracle_speedup'], TIMES)}"
            bar = charts.Ratio(
                name if several else clean(category),
                row["speedup"],
                (bounds[0], bounds[1]) if bounds else None,
                row["oracle_speedup"],
                words,
            )
            groups[-1][1].append(bar)
    if not any(bars for _, bars in groups):
        return None
    return charts.ratio_chart("speedups", "Speed-up by kind of work", groups)


def _acceptance(document: Document) -> Markup | None:
    order = candidates(document)
    lines = [
        charts.Series(
            [(i, 100 * share) for i, share in enumerate(shares, 1)],
            _colour(order.index(candidate)),
            order.index(candidate),
            label(document, candidate),
        )
        for candidate, shares in acceptance_by_position(document).items()
    ]
    if not lines:
        return None
    return charts.line_chart(
        "acceptance",
        "Acceptance by position in the draft",
        lines,
        axes=("position in the draft", "% accepted"),
        ticks=(0, 25, 50, 75, 100),
        unit="%",
    )


def _time(document: Document) -> Markup | None:
    stacks = []
    for name, parts in time_split(document):
        total = duration(sum(parts.values()))
        shown = [f"{part} {duration(ms)}" for part, ms in parts.items()]
        stacks.append(charts.Stack(name, parts, total, f"{name}: {total}; {', '.join(shown)}"))
    if not stacks:
        return None
    return charts.stack_chart("time", "Where the time of an answer goes", stacks)


def _costs(document: Document) -> Markup | None:
    by_name = cost_curves(document)
    if not by_name:
        return None
    lines = [
        charts.Series(list(curve.items()), _colour(i), i, clean(name))
        for i, (name, curve) in enumerate(by_name.items())
    ]
    target = by_name["target"]
    return charts.line_chart(
        "costs",
        "Cost of one pass by its rows",
        lines,
        axes=("rows checked in one pass", "ms"),
        ticks=charts.ticks_to(max(ms for curve in by_name.values() for ms in curve.values())),
        unit=" ms",
        reference=((1, target[1]), (max(target), max(target) * target[1])),
    )


def _colour(number: int) -> str:
    return f"c{number % COLOURS}"


def _row(document: Document, result: Mapping[str, Any]) -> list[str]:
    cells = [
        clean(result["category"]),
        label(document, key(result)),
        factor(result["speedup"], TIMES),
        interval(result["speedup_ci"], DASH) or NONE,
        decimal(result["plain_tps"]),
        decimal(result["tps"]),
        percent(result["draft_acceptance_rate"]),
        decimal(result["mean_acceptance_length"], 2),
        percent(result["draft_share"]),
        duration(result["first_token_ms"]),
        same_text(result),
        factor(result["oracle_speedup"], TIMES),
        percent(result["of_oracle"]),
    ]
    return _dashed(cells)


def _dashed(cells: list[str] | tuple[str, ...]) -> list[str]:
    return [DASH if cell == NONE else cell for cell in cells]
