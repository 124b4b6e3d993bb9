"""The figures of an answer in words: the line while it comes, and the one after it."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from rich.cells import cell_len

if TYPE_CHECKING:
    from specdec_cli.app.generate import Answer
    from specdec_cli.core.statistics import Statistics

FIRST_FIGURES = 4  # passes before a speed means anything
ENDINGS = {"length": "cut at -n", "context": "the context is full"}
NARROW = 50  # columns under which a line says less


def live_line(statistics: Statistics, width: int = 80) -> str:
    """`12/16 drafts accepted (75%) · 4.10 tokens per pass · 25.3 tok/s, ≈1.6x plain · draft 51%`

    On a narrow screen `75% · 25.3 tok/s`.
    """
    if statistics.passes < FIRST_FIGURES:
        return token_count(statistics)
    if width < NARROW:
        return narrow_line(statistics)
    parts = [acceptance(statistics)] if statistics.drafted else []
    parts += speed(statistics)
    if statistics.drafted and statistics.draft_share is not None:
        parts.append(f"draft {statistics.draft_share:.0%}")
    if not statistics.drafted and statistics.plain_seconds is not None:
        parts.append("no guesses pay so far")
    return " · ".join(parts)


def narrow_line(statistics: Statistics) -> str:
    parts = [f"{statistics.acceptance_rate:.0%}"] if statistics.drafted else []
    return " · ".join([*parts, *speed(statistics)[-1:]])


def summary(answer: Answer, seed: int, *, hint: str = "", told: str = "") -> list[str]:
    """What there is to say after an answer, the most important first.

    Args:
        hint: what helps where it was cut off.
        told: the end of the decision that the reader has seen before.
    """
    statistics = answer.statistics
    parts = [acceptance(statistics)] if statistics.drafted else [token_count(statistics)]
    parts += speed(statistics)
    if not statistics.drafted:
        parts.append(f"nothing drafted ({answer.decision.removesuffix(f'; {told}')})")
    if answer.first_token_seconds is not None:
        parts.append(f"first token {answer.first_token_seconds:.2f} s")
    if answer.finish != "stop":
        ending = ENDINGS.get(answer.finish, answer.finish)
        parts.append(f"{ending} ({hint})" if hint and answer.finish != "context" else ending)
    return [*parts, f"seed {seed}"]


def folded(parts: list[str], width: int) -> str:
    """The parts with dots between them, in as many lines as that takes; only a part that is
    wider than a line is cut in two, between words."""
    lines: list[str] = []
    for part in parts:
        if lines and cell_len(longer := f"{lines[-1]} · {part}") <= width:
            lines[-1] = longer
        else:
            lines.append(part)
    return "\n".join(row for line in lines for row in _fitting(line, width))


def _fitting(line: str, width: int) -> list[str]:
    fits = cell_len(line) <= width
    return [line] if fits else wrap(line, max(width, 1), break_on_hyphens=False)


def acceptance(statistics: Statistics) -> str:
    rate = statistics.acceptance_rate or 0.0
    return f"{statistics.accepted}/{statistics.drafted} drafts accepted ({rate:.0%})"


def token_count(statistics: Statistics) -> str:
    return "1 token" if statistics.tokens == 1 else f"{statistics.tokens} tokens"


def speed(statistics: Statistics) -> list[str]:
    parts = []
    if statistics.drafted and statistics.tokens_per_pass is not None:
        parts.append(f"{statistics.tokens_per_pass:.2f} tokens per pass")
    if statistics.passes > 1 and statistics.tokens_per_second is not None:
        gain = statistics.predicted_speedup if statistics.drafted else None
        against = "" if gain is None else f", ≈{gain:.1f}x plain"
        parts.append(f"{statistics.tokens_per_second:.1f} tok/s{against}")
    return parts
