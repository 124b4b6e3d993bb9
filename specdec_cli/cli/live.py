"""Text streaming to a terminal with one live line of statistics under it.

The line is redrawn below the text and the cursor put back, so settled text stays in the
scrollback as if nothing else had been there.
"""

from __future__ import annotations

import sys
from time import monotonic

from rich.cells import cell_len, set_cell_size

from specdec_cli.cli.console import Terminal
from specdec_cli.core.statistics import Statistics

REDRAWS_PER_SECOND = 15
ERASE_BELOW = "\x1b[J"
TAB = 8


class LiveStream:
    """Writes text to stdout as it comes; `status` shows a line under it where that is possible."""

    def __init__(self, terminal: Terminal, *, colours: bool) -> None:
        self._terminal = terminal
        self._colours = colours
        self._both = terminal.live and sys.stdout.isatty()
        self._column = 0
        self._shown = False
        self._next_draw = 0.0

    def write(self, text: str, source: str) -> None:
        if not text:
            return
        painted = self._terminal.paint(text, source if self._colours else "target")
        if self._shown:
            painted = ERASE_BELOW + painted
            self._shown = False
        sys.stdout.write(painted)
        sys.stdout.flush()
        if self._both:
            self._advance(text)

    def status(self, line: str) -> None:
        """Show a line under the text, at most a few times a second."""
        if not self._terminal.live or (now := monotonic()) < self._next_draw:
            return
        self._next_draw = now + 1 / REDRAWS_PER_SECOND
        width = self._terminal.err.width
        line = set_cell_size(line, min(cell_len(line), width - 1))
        if not self._both:  # the text goes elsewhere: the whole line is ours
            sys.stderr.write(f"\r{line}\x1b[K")
        elif self._column < width:  # at the edge, the cursor could not be put back
            back = f"\x1b[{self._column}C" if self._column else ""
            sys.stdout.write(f"\n\x1b[2m{line}\x1b[0m\x1b[K\x1b[A\r{back}")
            sys.stdout.flush()
        self._shown = True
        sys.stderr.flush()

    def close(self) -> None:
        """Take the line away and end the text's last line."""
        if self._shown:
            if self._both:
                sys.stdout.write(ERASE_BELOW)
            else:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
            self._shown = False
        sys.stdout.flush()

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
    """`12/16 drafts accepted (75%) · 4.10 tokens per pass · 25.3 tok/s · draft 51% of the time`"""
    parts = [acceptance(statistics)] if statistics.drafted else []
    parts += speed(statistics)
    if statistics.drafted and statistics.draft_share is not None:
        parts.append(f"draft {statistics.draft_share:.0%} of the time")
    return " · ".join(parts)


def acceptance(statistics: Statistics) -> str:
    rate = statistics.acceptance_rate or 0.0
    return f"{statistics.accepted}/{statistics.drafted} drafts accepted ({rate:.0%})"


def speed(statistics: Statistics) -> list[str]:
    parts = []
    if statistics.drafted and statistics.tokens_per_pass is not None:
        parts.append(f"{statistics.tokens_per_pass:.2f} tokens per pass")
    if statistics.tokens_per_second is not None:
        parts.append(f"{statistics.tokens_per_second:.1f} tok/s")
    return parts
