"""Two benchmarks side by side, as markdown that reads as text too."""

from __future__ import annotations

from specdec_cli.app.bench.comparison import Change, Comparison, Measured
from specdec_cli.cli.bench_markdown import escaped, table, with_interval
from specdec_cli.cli.bench_words import NONE, decimal

HEADER = ("category", "candidate", "before", "now", "change", "intervals", "plain tok/s")
TEXTS = (True, True, False, False, False, True, False)
OVERLAP = {True: "overlap", False: "apart", None: NONE}


def comparison_markdown(comparison: Comparison) -> str:
    """Speed-ups then and now, the mean of each candidate first, and what else differs."""
    names = _names(comparison)
    rows = [_cells(change, names) for change in (*comparison.candidates, *comparison.rows)]
    parts = ["Speed-up over plain, each measured against plain decoding in its own run:"]
    parts.append(table(HEADER, rows, TEXTS))
    if comparison.conditions:
        parts.append("The conditions differ:")
        parts.append("\n".join(f"* {escaped(line)}" for line in comparison.conditions))
    for places, when in ((comparison.only_before, "before"), (comparison.only_after, "now")):
        if places:
            parts.append(f"Only {when}:")
            parts.append("\n".join(f"* {escaped(place)}" for place in places))
    return "\n\n".join(parts) + "\n"


def _cells(change: Change, names: dict[tuple[str, int | str, str], str]) -> list[str]:
    plain = change.plain_tps
    return [
        "**all**" if change.category is None else escaped(change.category),
        escaped(names[change.candidate]),
        _measured(change.before),
        _measured(change.after),
        f"{change.ratio - 1:+.1%}",
        OVERLAP[change.overlap],
        NONE if plain is None else f"{decimal(plain[0])} to {decimal(plain[1])}",
    ]


def _measured(measured: Measured) -> str:
    return with_interval(measured.speedup, measured.interval)


def _names(comparison: Comparison) -> dict[tuple[str, int | str, str], str]:
    """The rule is named only where several are compared."""
    found = [change.candidate for change in comparison.candidates]
    several = len({accept for _, _, accept in found}) > 1
    return {
        (drafter, k, accept): f"{drafter} k={k}" + (f" {accept}" if several else "")
        for drafter, k, accept in found
    }
