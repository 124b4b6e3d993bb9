"""The two streams: answers and data on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from rich.console import Console, RenderableType
from rich.style import Style
from rich.text import Text

from specdec_cli.cli.options import Colour, CommonFlags

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and newline
PLAIN, FAINT = Style(), Style(dim=True)
STYLES = {  # of accepted guesses
    "model": Style(color="green"), "self": Style(color="cyan"), "suffix": Style(color="blue"),
}  # fmt: skip


class Terminal:
    """What the commands print through. Model and user text is never read as markup."""

    def __init__(self, flags: CommonFlags) -> None:
        self.quiet = flags.quiet
        self.json = flags.json
        self._coloured_always = flags.color is Colour.always
        self.verbose = flags.verbose
        self._noticed: set[str] = set()
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # what the locale cannot show must not end a run
                stream.reconfigure(errors="replace")
        self.out = _console(sys.stdout, flags.color)
        self.err = _console(sys.stderr, flags.color)

    @property
    def live(self) -> bool:
        """May a line be redrawn on stderr?"""
        dumb = os.environ.get("TERM") == "dumb"
        return not self.quiet and not self.json and sys.stderr.isatty() and not dumb

    @property
    def draws(self) -> bool:
        """Is there somebody to look at a chart? Not in a pipe, not with --quiet."""
        return not self.quiet and sys.stdout.isatty()

    def chart(self, chart: RenderableType) -> None:
        """Something that rich can draw, on stdout."""
        self.out.print()
        self.out.print(chart)

    @contextmanager
    def working(self, what: str) -> Iterator[Callable[[str], None]]:
        """A spinner on stderr while something takes a moment; call what it gives to reword it."""
        if not self.live or self.verbose:
            yield lambda text: None
            return
        with self.err.status(Text(harmless(what))) as status:
            yield lambda text: status.update(Text(harmless(text)))

    def notice(self, text: str) -> None:
        """Said once, however many prompts give rise to it."""
        if not self.quiet and text not in self._noticed:
            self._noticed.add(text)
            _plain(self.err, f"note: {text}", "yellow")

    def remark(self, text: str, *, once: bool = False) -> None:
        """A line that is welcome but says nothing went wrong."""
        if not self.quiet and not (once and text in self._noticed):
            self._noticed |= {text} if once else set()
            _plain(self.err, text, "dim")

    def report(self, text: str) -> None:
        """What was asked for in the middle of a chat, where stdout is for answers."""
        _plain(self.err, text, wrapped=self.err.is_terminal)

    def line(self, text: str) -> None:
        """A line of a report, on stdout."""
        _plain(self.out, text)

    def data(self, document: Any) -> None:
        """One JSON document on stdout; escaped where the stream cannot hold every character."""
        sys.stdout.write(as_json(document) + "\n")
        sys.stdout.flush()

    def paint(self, text: str, source: str, *, faint: bool = False) -> str:
        """Text for stdout; on a terminal harmless, and coloured by who chose it.

        FORCE_COLOR alone does not colour a pipe: an answer in a file should be the answer.
        """
        if not (sys.stdout.isatty() or self._coloured_always):
            return text
        style = STYLES.get(source, PLAIN)
        return self._styled(harmless(text), style + FAINT if faint else style)

    def faint(self, text: str) -> str:
        return self._styled(text, FAINT)

    def colour(self) -> bool:
        """Colours from now on, whatever NO_COLOR says; False where there can be none."""
        self.out.no_color = False
        return self.fades

    @property
    def fades(self) -> bool:
        """Can faint text be told from other text? It can without colours."""
        return self.out._color_system is not None

    def _styled(self, text: str, style: Style) -> str:
        shown = style.without_color if self.out.no_color else style
        return shown.render(text, color_system=self.out._color_system)


def as_json(document: Any) -> str:
    escape = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    return json.dumps(document, ensure_ascii=escape, allow_nan=False)


def _plain(console: Console, text: str, style: str | None = None, *, wrapped: bool = False) -> None:
    """Print text that may hold a file's or a model's own words: no markup, lines as they are."""
    soft = not wrapped
    console.print(harmless(text), style=style, markup=False, highlight=False, soft_wrap=soft)


def harmless(text: str) -> str:
    """Control characters made visible, so that a model's text cannot drive the terminal."""
    return CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _console(stream: TextIO, colour: Colour) -> Console:
    """Rich honours NO_COLOR, FORCE_COLOR and TERM=dumb by itself; the option stands above them."""
    if colour is Colour.never:
        return Console(file=stream, no_color=True, color_system=None)
    if colour is Colour.always:
        return Console(file=stream, force_terminal=True, no_color=False)
    return Console(file=stream)
