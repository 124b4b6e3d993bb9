"""Text streaming to a terminal with one live line of statistics under it.

The line is redrawn below the text and the cursor put back, so settled text stays in the
scrollback as if nothing else had been there.
"""

from __future__ import annotations

import os
import stat
import sys
from time import monotonic

from rich.cells import cell_len, set_cell_size

from specdec_cli.cli.console import Terminal
from specdec_cli.core.statistics import Statistics

REDRAWS_PER_SECOND = 15
ERASE_BELOW, ERASE_LINE, UP = "\x1b[J", "\r\x1b[K", "\x1b[A"
TAB = 8
FIRST_FIGURES = 4  # passes before a speed means anything


class LiveStream:
    """Writes text to stdout as it comes; `status` shows a line where that harms nothing.

    That is under the text on a terminal, or on stderr alone while the text goes to a file. A pipe
    may end at the same terminal, so there is no line beside one.
    """

    def __init__(self, terminal: Terminal, *, colours: bool) -> None:
        self._terminal = terminal
        self._colours = colours
        self._under_text = terminal.live and sys.stdout.isatty()
        self._alone = terminal.live and _is_file(sys.stdout.fileno())
        self._column = 0
        self._shown = False
        self._next_draw = 0.0

    def write(self, text: str, source: str) -> None:
        if not text:
            return
        painted = self._terminal.paint(text, source if self._colours else "target")
        sys.stdout.write(self._hide() + painted)
        sys.stdout.flush()
        if self._under_text:
            self._advance(text)

    def status(self, line: str) -> None:
        """Show a line, at most a few times a second."""
        if not (self._under_text or self._alone) or (now := monotonic()) < self._next_draw:
            return
        self._next_draw = now + 1 / REDRAWS_PER_SECOND
        width = self._terminal.err.width
        line = set_cell_size(line, min(cell_len(line), width - 1))
        if self._alone:
            sys.stderr.write(f"{ERASE_LINE}{line}")
            sys.stderr.flush()
        elif self._column < width:  # at the edge, the cursor could not be put back
            back = f"\x1b[{self._column}C" if self._column else ""
            sys.stdout.write(f"\n{self._terminal.dim(line)}\x1b[K{UP}\r{back}")
            sys.stdout.flush()
        else:
            return
        self._shown = True

    def close(self) -> None:
        """Take the line away."""
        sys.stdout.write(self._hide())
        sys.stdout.flush()

    def _hide(self) -> str:
        """What to write to stdout so that the line is gone."""
        shown, self._shown = self._shown, False
        if shown and self._alone:
            sys.stderr.write(ERASE_LINE)
            sys.stderr.flush()
        return ERASE_BELOW if shown and self._under_text else ""

    def _advance(self, text: str) -> None:
        """Follow the cursor's column through text that may wrap."""
        width = self._terminal.out.width
        for character in text:
            if character == "\n":
                self._column = 0
            elif character == "\t":
                self._column = min((self._column // TAB + 1) * TAB, width - 1)
            else:
                cells = cell_len(character)
                self._column = cells if self._column + cells > width else self._column + cells


def live_line(statistics: Statistics) -> str:
    """`12/16 drafts accepted (75%) · 4.10 tokens per pass · 25.3 tok/s, ≈1.6x plain · draft 51%`"""
    if statistics.passes < FIRST_FIGURES:
        return token_count(statistics)
    parts = [acceptance(statistics)] if statistics.drafted else []
    parts += speed(statistics)
    if statistics.drafted and statistics.draft_share is not None:
        parts.append(f"draft {statistics.draft_share:.0%}")
    if not statistics.drafted and statistics.plain_seconds is not None:
        parts.append("no guesses pay so far")
    return " · ".join(parts)


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


def _is_file(descriptor: int) -> bool:
    """A regular file, or /dev/null: nothing that could show up on a terminal."""
    mode = os.fstat(descriptor).st_mode
    null = stat.S_ISCHR(mode) and os.path.samestat(os.fstat(descriptor), os.stat(os.devnull))
    return stat.S_ISREG(mode) or null
