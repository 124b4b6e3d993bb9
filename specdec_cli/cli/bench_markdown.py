"""A benchmark as markdown: ready to paste into an issue, and to read in a terminal as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len

from specdec_cli.cli.bench_costs import cost_tables
from specdec_cli.cli.bench_words import (
    NONE,
    Document,
    clean,
    decimal,
    duration,
    factor,
    interval,
    key,
    label,
    machine,
    model_words,
    notes,
    percent,
    same_text,
    sampling,
    verdict,
)

SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\|<>*`[]$~&"})
Cell = Callable[[Document, Mapping[str, Any]], str]

COLUMNS: dict[str, Cell] = {
    "category": lambda document, result: escaped(result["category"]),
    "candidate": lambda document, result: escaped(label(document, key(result))),
    "plain tok/s": lambda document, result: decimal(result["plain_tps"]),
    "tok/s": lambda document, result: decimal(result["tps"]),
    "speed-up": lambda document, result: with_interval(result["speedup"], result["speedup_ci"]),
    "accepted": lambda document, result: percent(result["draft_acceptance_rate"]),
    "length": lambda document, result: decimal(result["mean_acceptance_length"], 2),
    "drafting": lambda document, result: percent(result["draft_share"]),
    "first token": lambda document, result: duration(result["first_token_ms"]),
    "same text": lambda document, result: same_text(result),
    "limit": lambda document, result: factor(result["oracle_speedup"]),
    "of limit": lambda document, result: percent(result["of_oracle"]),
}
TEXTS = ("category", "candidate", "same text")
SPARED = (  # from a table that is too wide, one after another
    "drafting", "length", "limit", "first token", "of limit", "plain tok/s", "accepted",
    "same text", "tok/s",
)  # fmt: skip


def markdown(document: Document, width: int | None = None) -> str:
    """Conditions, one row for each category and candidate, a line for each candidate, notes.

    Args:
        width: of a terminal: columns that would make the table wider are left out, the least
            needed first; None keeps all of them.
    """
    parts = ["\n".join(_header(document))]
    if document["results"]:
        cells = [
            [cell(document, result) for cell in COLUMNS.values()] for result in document["results"]
        ]
        used = [
            i
            for i, name in enumerate(COLUMNS)
            if name in TEXTS[:2] or any(row[i] != NONE for row in cells)
        ]
        names = list(COLUMNS)
        parts.append(_fitting(names, cells, used, width))
        parts.append("\n".join(_summary(document)))
    if said := notes(document):
        parts.append("\n".join(f"* {escaped(note)}" for note in said))
    return "\n\n".join(parts) + "\n"


def _fitting(
    names: Sequence[str], cells: Sequence[Sequence[str]], used: list[int], width: int | None
) -> str:
    """The table with as many of the columns `used` as the width allows."""
    left = list(SPARED)
    while True:
        drawn = table(
            [names[i] for i in used],
            [[row[i] for i in used] for row in cells],
            [names[i] in TEXTS for i in used],
        )
        if width is None or not left or cell_len(drawn.partition("\n")[0]) <= width:
            return drawn
        dropped = left.pop(0)
        used = [i for i in used if names[i] != dropped]


def costs_markdown(document: Document) -> str:
    """v(n) of every model at every depth, and the acceptance from which each length pays."""
    parts = ["\n".join(_header(document))]
    for costs in cost_tables(document):
        header = [escaped(name) for name in costs.header]
        parts.append(
            f"v(n), one pass with n new rows, after {costs.context} tokens of context:\n\n"
            + table(header, costs.lines, [False] * len(header))
        )
    parts.append("\n".join(f"* {escaped(note)}" for note in [*notes(document), READING_COSTS]))
    return "\n\n".join(parts) + "\n"


READING_COSTS = (
    "Drafting k guesses needs a target pass of k+1 rows; it pays where a guess is accepted more "
    "often than the last columns say, each as likely as the next."
)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], texts: Sequence[bool]) -> str:
    """A padded table; columns of texts stand left, numbers right."""
    lines = [header, *rows]
    widths = [max(3, *(cell_len(line[i]) for line in lines)) for i in range(len(header))]

    def padded(cells: Sequence[str]) -> str:
        parts = []
        for cell, width, text in zip(cells, widths, texts, strict=True):
            gap = " " * (width - cell_len(cell))
            parts.append(cell + gap if text else gap + cell)
        return f"| {' | '.join(parts)} |"

    rule = [
        "-" * width if text else "-" * (width - 1) + ":"
        for width, text in zip(widths, texts, strict=True)
    ]
    return "\n".join([padded(header), f"| {' | '.join(rule)} |", *map(padded, lines[1:])])


def escaped(text: str) -> str:
    """Nothing in a name is markup; an underscore within a word needs no care on GitHub."""
    return clean(text).translate(SPECIAL)


def with_interval(value: float | None, bounds: Sequence[float] | None) -> str:
    between = interval(bounds)
    return f"{factor(value)} ({between})" if between else factor(value)


def _header(document: Document) -> list[str]:
    conditions = document["conditions"]
    models = f"**{escaped(model_words(conditions['target']))}**"
    if conditions["drafts"]:
        names = [escaped(model_words(draft)) for draft in conditions["drafts"]]
        models += f", drafted by {', '.join(names)}"
    runs = [f"{clean(conditions['workload'])} workload", sampling(document)]
    for count, what in (("max_tokens", "at most {} tokens"), ("repetitions", "{} repetitions")):
        if conditions[count] is not None:
            runs.append(what.format(conditions[count]))
    if conditions["exact"]:
        runs.append("exact mode")
    versions = conditions["versions"]
    runs.append(f"specdec {versions.get('specdec')}, llama.cpp {versions.get('llama_cpp')}")
    lines = [f"{models} on {escaped(machine(document))}  ", escaped(", ".join(runs))]
    if document["results"]:
        lines += ["", f"{escaped(verdict(document))}."]
    return lines


def _summary(document: Document) -> list[str]:
    lines = []
    for entry in document["summary"]["candidates"]:
        if (speedup := entry["speedup_geomean"]) is None:
            continue
        line = f"* **{escaped(label(document, key(entry)))}**: "
        line += f"{with_interval(speedup, entry['speedup_ci'])} overall"
        if entry["worst_category"] is not None:
            line += f", worst {escaped(entry['worst_category'])} {factor(entry['worst_speedup'])}"
        if entry["oracle_geomean"] is not None:
            line += f", limit {factor(entry['oracle_geomean'])}"
        if entry["of_oracle"] is not None:
            line += f" ({percent(entry['of_oracle'])} of it reached)"
        lines.append(line)
    return lines
