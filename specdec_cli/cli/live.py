"""Text streaming to a terminal, with what is not settled after it: ghost text and one live line.

What is not settled is drawn below and after the text, and the cursor goes back to the end of the
text. So settled text stays in the scrollback as if nothing else had ever been there.
"""

from __future__ import annotations

import os
import stat
import sys
from time import monotonic
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from specdec_cli.cli.console import Terminal, harmless

REDRAWS_PER_SECOND = 15
ERASE_BELOW, ERASE_LINE = "\x1b[J", "\r\x1b[K"
DOWN, SAVE, RESTORE = "\x1bD", "\x1b7", "\x1b8"  # down keeps the column and scrolls where it must
FRAME, FRAME_END = "\x1b[?2026h", "\x1b[?2026l"  # shown at once, where a terminal knows how
TAB = 8


class Span(NamedTuple):
    """Some text, who chose it, and whether it is an aside (shown faint)."""

    text: str
    source: str
    aside: bool


class LiveStream:
    """Writes text to stdout as it comes; `ghost` and `status` show what may still change.

    On a terminal each of `ghost`, `status` and `close` is one write, and `write` waits for it.
    Elsewhere text is written at once, and the line is on stderr alone while the text goes to a
    file. A pipe may end at the same terminal, so there is no line beside one.
    """

    def __init__(self, terminal: Terminal, *, colours: bool) -> None:
        self._terminal = terminal
        self._colours = colours
        self._under_text = terminal.live and sys.stdout.isatty()
        self._alone = terminal.live and _is_file(sys.stdout.fileno())
        self._width = terminal.out.width
        self._column: int | None = 0  # None: a resize has moved the text nobody knows how
        self._pending: list[Span] = []
        self._ghost = ""
        self._line = ""
        self._shown = False
        self._next_line = 0.0

    def write(self, text: str, source: str, *, aside: bool = False) -> None:
        self._ghost = ""
        span = Span(text, source, aside)
        if not text:
            return
        if self._under_text:
            self._pending.append(span)
        else:
            sys.stdout.write(self._painted(span))
            sys.stdout.flush()

    def ghost(self, text: str) -> None:
        """Show text that has been drafted and not been checked; the next text replaces it."""
        if self._under_text and self._terminal.fades:
            self._ghost = harmless(text).expandtabs(TAB)
            self._draw()

    def status(self, line: str, *, at_once: bool = False) -> None:
        """Show what was written, and under it a line that changes a few times a second."""
        if (now := monotonic()) >= self._next_line or at_once:
            self._next_line = now + 1 / REDRAWS_PER_SECOND
            self._line = harmless(line)
            if self._alone:
                sys.stderr.write(f"{ERASE_LINE}{self._fitting_line()}")
                sys.stderr.flush()
        if self._under_text:
            self._draw()

    def close(self) -> None:
        """Show what was written, and nothing else any more."""
        if self._alone and self._line:
            sys.stderr.write(ERASE_LINE)
            sys.stderr.flush()
        if self._under_text:
            self._draw(final=True)
        self._line = self._ghost = ""

    def _draw(self, *, final: bool = False) -> None:
        erase = ERASE_BELOW if self._shown else ""
        self._follow_resize()
        self._pending = [self._placed(span) for span in self._pending]
        tail = [] if final else self._hold_back()
        text = "".join(map(self._painted, self._pending))
        below = "" if final else self._below(tail)
        self._pending = tail
        self._shown = bool(below)
        if below:
            sys.stdout.write(f"{FRAME}{erase}{text}{below}{FRAME_END}")
        else:
            sys.stdout.write(erase + text)
        sys.stdout.flush()

    def _placed(self, span: Span) -> Span:
        """Follow the cursor through some text; a tab becomes blanks, for at the edge of a row it
        would leave the cursor on a character."""
        parts = harmless(span.text).split("\t")
        text = parts[0]
        _, self._column = walk(text, self._column, self._width)
        for part in parts[1:]:
            text += (part := " " * (TAB - (self._column or 0) % TAB) + part)
            _, self._column = walk(part, self._column, self._width)
        return span._replace(text=text)

    def _hold_back(self) -> list[Span]:
        """Take a last character that would fill its row out of `_pending`.

        After it the cursor is in a state of its own, in which terminals differ and to which it
        could not be put back. It is shown, and settles with what comes next.
        """
        if self._column != self._width:
            return []
        text, source, aside = self._pending[-1]
        at = next((i for i in range(len(text) - 1, -1, -1) if cell_len(text[i])), 0)
        self._pending[-1] = Span(text[:at], source, aside)
        self._column -= cell_len(text[at:])
        return [Span(text[at:], source, aside)]

    def _below(self, tail: list[Span]) -> str:
        """All that is not settled, drawn from the cursor on and back to it; empty for nothing."""
        if self._column is None or not (tail or self._ghost or self._line):
            return ""
        kept = "".join(span.text for span in tail)
        rows, _ = walk(kept + self._ghost, self._column, self._width)
        ghost = self._ghost
        if rows + 2 > self._terminal.out.height:  # it would scroll its own beginning away
            rows, ghost = 0, ""
        line = f"\r\n{self._terminal.faint(self._fitting_line())}" if self._line else ""
        rows += bool(line)
        room = f"{DOWN * rows}\x1b[{rows}A" if rows else ""
        shown = "".join(map(self._painted, tail)) + self._terminal.faint(ghost)
        return f"{room}{SAVE}{shown}{line}{RESTORE}"

    def _follow_resize(self) -> None:
        width = self._terminal.out.width
        if width != self._width:
            self._width, self._column = width, None

    def _painted(self, span: Span) -> str:
        source = span.source if self._colours else "target"
        return self._terminal.paint(span.text, source, faint=span.aside)

    def _fitting_line(self) -> str:
        return set_cell_size(self._line, min(cell_len(self._line), self._terminal.err.width - 1))


def walk(text: str, column: int | None, width: int) -> tuple[int, int | None]:
    """How many rows down the cursor goes through text that may wrap, and its column then.

    `width` itself is the column after a character that filled the row. None is not known, and
    known again after a newline.
    """
    rows = 0
    for character in text:
        if character == "\n":
            rows, column = rows + 1, 0
        elif column is not None:
            cells = cell_len(character)
            if column + cells > width:
                rows, column = rows + 1, 0
            column += cells
    return rows, column


def _is_file(descriptor: int) -> bool:
    """A regular file, or /dev/null: nothing that could show up on a terminal."""
    mode = os.fstat(descriptor).st_mode
    null = stat.S_ISCHR(mode) and os.path.samestat(os.fstat(descriptor), os.stat(os.devnull))
    return stat.S_ISREG(mode) or null
