"""What `specdec tune` found, as tables and as a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from specdec_cli.cli.console import Terminal

if TYPE_CHECKING:
    from specdec_cli.app.plain_speeds import Speed
    from specdec_cli.app.tune import Findings, Result, Way, Work

Values = Mapping[str, str | int | bool]


def show(terminal: Terminal, found: Findings, work: Work, name: str, values: Values | None) -> None:
    """The evidence, then the profile that follows from it; only the evidence without one."""
    from specdec_cli.app.plain_speeds import fastest
    from specdec_cli.app.profiles import table
    from specdec_cli.app.tune import PLAIN

    if found.threads:
        _show_speeds(
            terminal, "THREADS", found.threads, fastest(found.threads, work.threads[0]),
            work.threads[0],
        )  # fmt: skip
    if found.batches:
        _show_speeds(
            terminal, "BATCH SIZE", found.batches, fastest(found.batches, work.batches[0]),
            work.batches[0],
        )  # fmt: skip
    if found.models:
        best = max(found.models, key=lambda result: result.speedup)
        _show_ways(terminal, "DRAFT ALONE", found.models, best.way)
    if found.ways:
        way = None if values is None else found.best or PLAIN
        _show_ways(terminal, "GUESSES FROM", found.ways, way)
    if values is not None:
        terminal.line(table(name, values).rstrip())


def document(
    found: Findings, values: Values | None, name: str, written: Path | None
) -> dict[str, Any]:
    """The JSON of `tune --json`."""
    return {
        "threads": [_speed(speed) for speed in found.threads],
        "batch_sizes": [_speed(speed) for speed in found.batches],
        "drafts": [_result(result) for result in found.models],
        "drafting": [_result(result) for result in found.ways],
        "profile": None if values is None else {"name": name, "values": dict(values)},
        "written": None if written is None else str(written),
        "complete": values is not None,
    }


def _speed(speed: Speed) -> dict[str, Any]:
    return {
        "setting": speed.setting,
        "prompt_per_second": speed.prompt,
        "plain_per_second": speed.answer,
    }


def _result(result: Result) -> dict[str, Any]:
    way = result.way
    return {
        "drafter": way.drafter,
        "draft_models": [str(file.path) for file in way.drafts],
        "k": "auto" if way.draft_tokens is None else way.draft_tokens,
        "speedup": result.speedup,
        "speedup_ci": result.interval,
    }


def _show_speeds(
    terminal: Terminal, title: str, speeds: Sequence[Speed], chosen: int, default: int
) -> None:
    plain = any(speed.answer is not None for speed in speeds)
    rows = []
    for speed in speeds:
        cells = [f"{speed.setting}", f"{speed.prompt:.1f}"]
        if plain:
            cells.append("" if speed.answer is None else f"{speed.answer:.1f}")
        words = ["default"] if speed.setting == default else []
        words += ["chosen"] if speed.setting == chosen else []
        rows.append([*cells, ", ".join(words)])
    headings = [title, "PROMPT TOK/S", *(["PLAIN TOK/S"] if plain else []), ""]
    _show(terminal, headings, rows)


def _show_ways(
    terminal: Terminal, title: str, results: Sequence[Result], chosen: Way | None
) -> None:
    plain = chosen is not None and chosen.drafter == "none"
    rows = [["plain", "0", "1.00x", "", "chosen" if plain else ""]]
    for result in results:
        way = result.way
        names = [file.path.stem for file in way.drafts]
        source = way.drafter if way.drafter in names else " · ".join([way.drafter, *names])
        k = "auto" if way.draft_tokens is None else str(way.draft_tokens)
        interval = "" if result.interval is None else "–".join(f"{x:.2f}" for x in result.interval)
        mark = "chosen" if way == chosen else ""
        rows.append([source, k, f"{result.speedup:.2f}x", interval, mark])
    _show(terminal, [title, "K", "SPEED-UP", "95 %", ""], rows)


def _show(terminal: Terminal, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        figures = heading not in (headings[0], "")
        table.add_column(heading, justify="right" if figures else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    if not terminal.out.is_terminal:  # a pipe has no width to fit into
        terminal.out.width = 200
    terminal.out.print(table, markup=False)
    terminal.line("")
