"""The pictures of docs/chat.md: a chat on a real terminal, drawn from what the terminal shows.

    python docs/images/screenshots.py [--model REF] [--draft REF]

Needs the development tools (pexpect, pyte).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from html import escape
from itertools import groupby
from pathlib import Path

import pexpect
import pyte

HERE = Path(__file__).parent
WIDTH, HEIGHT = 8.4, 18  # of a cell, in pixels
NBSP = "\N{NO-BREAK SPACE}"
READY = "\x1b[?2004h"
THEMES = {
    "dark": {"back": "#1c1c1c", "default": "#d8d8d8", "green": "#5fd787", "blue": "#6cb6ff",
             "cyan": "#56d4dd", "brown": "#d7ba7d"},
    "light": {"back": "#ffffff", "default": "#24292f", "green": "#1a7f37", "blue": "#0969da",
              "cyan": "#1b7c83", "brown": "#9a6700"},
}  # fmt: skip


class Faint(pyte.HistoryScreen):
    """pyte, but it knows SGR 2: shown as italics, which nothing here uses."""

    def select_graphic_rendition(self, *attributes: int, **options: bool) -> None:
        super().select_graphic_rendition(*attributes, **options)
        if 2 in attributes:
            self.cursor.attrs = self.cursor.attrs._replace(italics=True)


class Terminal:
    """A chat, and the screen that it draws on."""

    def __init__(self, arguments: list[str], columns: int, lines: int, **env: str) -> None:
        self.screen = Faint(columns, lines)
        self._stream = pyte.Stream(self.screen)
        self._child = pexpect.spawn(
            sys.executable,
            ["-m", "specdec_cli", "chat", "--no-save", *arguments],
            dimensions=(lines, columns),
            env={**os.environ, "TERM": "xterm-256color", **env},
            encoding="utf-8",
            timeout=600,
        )
        self._child.logfile_read = self
        self._until: Callable[[], bool] = lambda: False
        self.screen.write_process_input = self._child.send

    def write(self, text: str) -> None:
        """Draw up to the moment that is waited for; what comes after it is not drawn."""
        for frame in text.split("\x1b[?2026l"):
            if not self._until():
                self._stream.feed(frame)

    def flush(self) -> None:
        pass

    def enter(self, *lines: str) -> None:
        for line in lines:
            self._child.expect_exact(READY)
            self._child.send(f"{line}\r")

    def settle(self) -> None:
        self._child.expect_exact(READY)
        self._child.expect([pexpect.TIMEOUT], timeout=1)

    def read_until(self, moment: Callable[[], bool]) -> None:
        self._until = moment
        while not moment():
            self._child.expect([pexpect.TIMEOUT], timeout=0.05)

    def close(self) -> None:
        self._child.close(force=True)


def ghosts(screen: pyte.Screen, line: int) -> Callable[[], bool]:
    """Does faint text stand after the cursor, so far down?"""

    def shown() -> bool:
        x, y = screen.cursor.x, screen.cursor.y
        row = screen.buffer[y]
        return y >= line and x > 8 and row[x].italics and row[x + 5].italics

    return shown


def as_svg(screen: pyte.Screen, theme: str) -> str:
    colours = THEMES[theme]
    written = [y for y in range(screen.lines) if screen.display[y].strip()]
    width, height = screen.columns * WIDTH + 24, (written[-1] + 1) * HEIGHT + 20
    rows = "\n".join(
        f'<text y="{28 + y * HEIGHT}">{"".join(_spans(screen, y, colours))}</text>' for y in written
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}" font-family="ui-monospace, Menlo, Consolas, '
        f'\'DejaVu Sans Mono\', monospace" font-size="14" fill="{colours["default"]}">\n'
        f'<rect width="100%" height="100%" rx="8" fill="{colours["back"]}" stroke="#8884"/>\n'
        f"{rows}\n</svg>\n"
    )


def _spans(screen: pyte.Screen, y: int, colours: dict[str, str]) -> Iterator[str]:
    cells = [(x, screen.buffer[y][x]) for x in range(screen.columns)]
    for look, run in groupby(cells, lambda c: (c[1].fg, c[1].bold, c[1].italics, c[1].reverse)):
        found = list(run)
        text = "".join(cell.data for _, cell in found)
        first = found[0][0] + len(text) - len(text.lstrip())
        if not (text := text.strip()):
            continue
        fg, bold, faint, reverse = look
        style = f' fill="{colours[fg]}"' if fg in colours and fg != "default" else ""
        style += ' font-weight="bold"' if bold or reverse else ""
        style += ' opacity="0.55"' if faint else ""
        x = 12 + first * WIDTH
        size = f' textLength="{len(text) * WIDTH:.1f}" lengthAdjust="spacingAndGlyphs"'
        shown = escape(text).replace(" ", NBSP)  # some viewers fold blanks
        yield f'<tspan x="{x:.1f}"{size}{style}>{shown}</tspan>'


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="qwen2.5-coder:1.5b")
    parser.add_argument("--draft", default="qwen2.5-coder:0.5b")
    chosen = parser.parse_args()
    pair = ["-m", chosen.model, "-md", chosen.draft, "-k", "4", "-s", "1", "--temp", "0.3"]
    question = "Write a Python function that merges two sorted lists. No comments."

    terminal = Terminal([*pair, "--ghost"], 80, 16)
    terminal.enter(question)
    terminal.read_until(ghosts(terminal.screen, 9))
    for theme in THEMES:
        (HERE / f"chat-ghost-{theme}.svg").write_text(as_svg(terminal.screen, theme))
    terminal.close()

    asked = "In one sentence: why is the sky blue?"
    for name, columns, lines, theme, env, typed in (
        ("chat-why-dark", 80, 34, "dark", {}, [asked, "/why"]),
        ("chat-40-light", 40, 30, "light", {}, [asked, "/retry", "/stats", "/context"]),
        (
            "chat-no-color",
            80,
            20,
            "light",
            {"NO_COLOR": "1"},
            [asked, "And red at dusk?", "/stats"],
        ),
    ):
        terminal = Terminal([*pair, "-n", "60"], columns, lines, **env)
        terminal.enter(*typed)
        terminal.settle()
        (HERE / f"{name}.svg").write_text(as_svg(terminal.screen, theme))
        terminal.close()


if __name__ == "__main__":
    main()
