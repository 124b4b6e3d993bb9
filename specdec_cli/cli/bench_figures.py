"""What the charts of a benchmark show, as plain numbers; the page and the plot draw the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from statistics import fmean
from typing import Any

from specdec_cli.cli.bench_costs import curves, depths
from specdec_cli.cli.bench_words import Document, Key, candidates, label, results_of

PARTS = ("target", "draft", "other")  # of the time after the prompt


def acceptance_by_position(document: Document) -> dict[Key, list[float]]:
    """Share of proposals whose i-th guess was accepted: the mean of the categories that have it."""
    found = {}
    for candidate in candidates(document):
        rows = [row["acceptance_per_position"] or [] for row in results_of(document, candidate)]
        columns = (
            [row[i] for row in rows if i < len(row)] for i in range(max(map(len, rows), default=0))
        )
        shares = [[share for share in column if share is not None] for column in columns]
        if means := [fmean(column) for column in shares if column]:
            found[candidate] = means
    return found


def time_split(document: Document) -> list[tuple[str, dict[str, float]]]:
    """Milliseconds of an answer after its prompt, by part: plain first, then every candidate.

    The mean over categories. Plain decoding is read from the runs, where these were kept.
    """
    bars = []
    if plain := _plain_ms(document["runs"]):
        bars.append(("plain", {"target": plain, "draft": 0.0, "other": 0.0}))
    for candidate in candidates(document):
        rows = [
            row
            for row in results_of(document, candidate)
            if all(row[f"{part}_ms"] is not None for part in PARTS)
        ]
        if rows:
            parts = {part: fmean(row[f"{part}_ms"] for row in rows) for part in PARTS}
            bars.append((label(document, candidate), parts))
    return bars if any(name != "plain" for name, _ in bars) else []


def cost_curves(document: Document) -> dict[str, dict[int, float]]:
    """Milliseconds by rows of the first depth, by model; empty where nothing was measured."""
    measured = depths(document)
    return curves(document["costs"] or measured[0]) if measured else {}


def _plain_ms(runs: Sequence[Mapping[str, Any]]) -> float | None:
    by_category: dict[str, list[float]] = {}
    for run in runs:
        if run.get("candidate") is None and isinstance(run.get("timings"), Mapping):
            spent = run["timings"].get("predicted_ms")
            if isinstance(spent, int | float) and 0 < spent < inf:
                by_category.setdefault(str(run.get("category")), []).append(spent)
    return fmean(map(fmean, by_category.values())) if by_category else None
