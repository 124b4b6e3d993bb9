"""What a pass costs by its rows, ready to print: in milliseconds, in plain passes, and from which
acceptance on a draft length pays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specdec_cli.cli.bench_words import NONE, Document, clean, decimal, factor, percent
from specdec_cli.core.cost_curve import CostCurve, break_even

FREE = "free guesses"  # a drafter that costs nothing, as suffix matching nearly does


@dataclass(frozen=True, slots=True)
class CostTable:
    """One context depth: a header, and a line of cells for each number of rows."""

    context: int
    header: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


def curves(costs: Mapping[str, Any]) -> dict[str, dict[int, float]]:
    """Milliseconds by rows, by name: the target first."""
    return {
        name: {int(rows): ms for rows, ms in sorted(curve.items(), key=lambda at: int(at[0]))}
        for name, curve in costs.items()
        if name != "context"
    }


def depths(document: Document) -> list[Mapping[str, Any]]:
    """What was measured at each context depth; often just one."""
    return document["cost_depths"] or ([document["costs"]] if document["costs"] else [])


def cost_tables(document: Document, times: str = "x") -> list[CostTable]:
    return [_table(costs, times) for costs in depths(document)]


def _table(costs: Mapping[str, Any], times: str) -> CostTable:
    by_name = curves(costs)
    target = by_name.pop("target")
    names = {name: clean(name) for name in by_name}
    header = ["rows", "target ms", "of v(1)"]
    for name in names.values():
        header += [f"{name} ms", "of v(1)"]
    header += ["k", *(f"{name} pays above" for name in names.values()), f"{FREE} pay above"]
    verify = CostCurve(target)
    lines = []
    for rows in sorted({count for curve in (target, *by_name.values()) for count in curve}):
        cells = [str(rows), *_cells(target, rows, times)]
        for curve in by_name.values():
            cells += _cells(curve, rows, times)
        k = rows - 1
        cells.append(str(k) if k else NONE)
        for draft in (*map(CostCurve, by_name.values()), None):
            cells.append(_from(break_even(verify, draft, k)) if k else NONE)
        lines.append(tuple(cells))
    return CostTable(costs["context"], tuple(header), tuple(lines))


def _cells(curve: Mapping[int, float], rows: int, times: str) -> tuple[str, str]:
    if rows not in curve:
        return NONE, NONE
    return decimal(curve[rows]), factor(curve[rows] / curve[1], times)


def _from(acceptance: float | None) -> str:
    return "never" if acceptance is None else percent(acceptance)
