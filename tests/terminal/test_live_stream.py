"""The renderer alone: what a terminal shows after each of its writes."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator

import pyte
import pytest
from screen import Emulator

from specdec_cli.cli.console import Terminal
from specdec_cli.cli.live import LiveStream
from specdec_cli.cli.options import CommonFlags

LINE = "12/16 drafts accepted (75%) · 25.3 tok/s"
PIECES = ("word", " and", " a longer one", "\n", "\n\n", "你好", "é", "🙂", " ", "x" * 30, "-")


class Paper:
    """Both streams of a process: a terminal that keeps every write and draws it at once."""

    encoding = "utf-8"

    def __init__(self, columns: int, lines: int, descriptor: int) -> None:
        self.writes: list[str] = []
        self.screen = Emulator(columns, lines, history=5000)
        self.screen.set_mode(pyte.modes.LNM)  # as the line discipline: \n also goes left
        self._stream = pyte.Stream(self.screen)
        self._descriptor = descriptor

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def write(self, text: str) -> int:
        if text:
            self.writes.append(text)
            self._stream.feed(text)
        return len(text)

    def flush(self) -> None:
        pass

    @property
    def shown(self) -> list[str]:
        columns = range(self.screen.columns)
        above = ["".join(row[x].data for x in columns) for row in self.screen.history.top]
        lines = [line.rstrip() for line in [*above, *self.screen.display]]
        while lines and not lines[-1]:
            lines.pop()
        return lines


class Sheet:
    """A stream on paper."""

    def __init__(self, paper: Paper, *, colours: bool = True) -> None:
        self.paper = paper
        self.terminal = Terminal(CommonFlags())
        self.resize(paper.screen.columns)
        self.live = LiveStream(self.terminal, colours=colours)

    def resize(self, columns: int) -> None:
        for console in (self.terminal.out, self.terminal.err):
            console.size = (columns, self.paper.screen.lines)  # type: ignore[assignment]
        self.paper.screen.resize(columns=columns)


@pytest.fixture
def descriptor() -> Iterator[int]:
    ours, theirs = os.openpty()
    yield theirs
    os.close(ours)
    os.close(theirs)


@pytest.fixture
def sheet(monkeypatch: pytest.MonkeyPatch, descriptor: int) -> Iterator[object]:
    def make(columns: int = 40, lines: int = 10, **options: bool) -> Sheet:
        paper = Paper(columns, lines, descriptor)
        monkeypatch.setattr(sys, "stdout", paper)
        monkeypatch.setattr(sys, "stderr", paper)
        return Sheet(paper, **options)

    return make


def plainly(text: str, columns: int, lines: int) -> list[str]:
    paper = Paper(columns, lines, -1)
    paper.write(text)
    return paper.shown


@pytest.mark.parametrize("columns", [7, 20, 40, 80])
@pytest.mark.parametrize("lines", [3, 10])
@pytest.mark.parametrize("seed", range(8))
def test_nothing_of_what_was_drawn_under_the_text_stays(
    sheet, columns: int, lines: int, seed: int
) -> None:
    """Random text, ghosts and lines; the scrollback at the end is that of the text alone."""
    chance = random.Random(seed)
    it = sheet(columns, lines)
    text = ""
    for _ in range(120):
        if chance.random() < 0.6:
            it.live.ghost("".join(chance.choices(PIECES, k=chance.randrange(6))))
        for piece in chance.choices(PIECES, k=chance.randrange(4)):
            it.live.write(piece, chance.choice(["target", "model"]))
            text += piece
        it.live.status(LINE)
    it.live.close()
    assert it.paper.shown == plainly(text, columns, lines)


@pytest.mark.parametrize("column", range(14))
def test_a_tab_ends_at_the_next_stop_or_goes_on_in_the_next_row(sheet, column: int) -> None:
    it = sheet(12)
    for text in ("x" * column, "\t", "end"):
        it.live.write(text, "target")
        it.live.status(LINE)
    it.live.close()
    place = column % 12 or column
    assert it.paper.shown == plainly("x" * column + " " * (8 - place % 8) + "end", 12, 10)


def test_each_update_is_one_write_and_the_line_never_goes_away(sheet) -> None:
    it = sheet()
    updates = 0
    for i in range(60):
        it.live.ghost(f" word {i + 1}\n" if i % 3 else " some words")
        it.live.write(f" word {i}", "model")
        it.live.write("\n" if i % 7 == 6 else "", "target")
        it.live.status(LINE)
        updates += 2
        assert it.paper.shown[-1] == LINE[:39]
    assert len(it.paper.writes) == updates
    it.live.close()
    assert LINE[:20] not in "".join(it.paper.shown)


def test_ghost_text_is_faint_then_ink_or_gone(sheet) -> None:
    it = sheet()
    it.live.write("The sky is", "target")
    it.live.ghost(" blue today")
    assert it.paper.shown == ["The sky is blue today"]
    assert "\x1b[2m blue today\x1b[0m" in it.paper.writes[-1]
    it.live.write(" blue", "model")
    it.live.status("")
    assert it.paper.shown == ["The sky is blue"]
    assert "\x1b[32m blue\x1b[0m" in it.paper.writes[-1]
    assert (it.paper.screen.cursor.x, it.paper.screen.cursor.y) == (15, 0)


def test_the_cursor_waits_at_the_end_of_the_text(sheet) -> None:
    it = sheet(20, 4)
    it.live.write("one\ntwo\nthree\nfour", "target")
    it.live.ghost(" and five and six and seven")
    it.live.status(LINE)
    assert it.paper.screen.display[1].rstrip() == "four and five and si"
    assert it.paper.screen.display[3].startswith("12/16")
    assert (it.paper.screen.cursor.x, it.paper.screen.cursor.y) == (4, 1)


def test_a_ghost_taller_than_the_screen_is_not_drawn(sheet) -> None:
    it = sheet(20, 4)
    it.live.write("text", "target")
    it.live.ghost("\n\n\n\nfar below")
    it.live.status(LINE)
    assert it.paper.shown == ["text", LINE[:19]]


@pytest.mark.parametrize("name", ["NO_COLOR", "TERM"])
def test_a_ghost_is_told_from_text_without_colours_or_not_drawn(
    sheet, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "1" if name == "NO_COLOR" else "dumb")
    it = sheet()
    it.live.write("text", "model")
    it.live.ghost(" ghost")
    it.live.close()
    written = "".join(it.paper.writes)
    assert "\x1b[32m" not in written
    assert ("\x1b[2m ghost\x1b[0m" in written) == (name == "NO_COLOR")
    assert it.paper.shown == ["text"]


HOSTILE = "[bold]b[/bold] \x1b[31mred\x1b]0;title\x07 \x9b2J a\rb \x08\x1b[?1049h \x1bc \x0e end"


def test_hostile_text_moves_nothing(sheet) -> None:
    it = sheet(80)
    it.live.ghost(HOSTILE)
    assert "\\x1b[31mred" in it.paper.shown[0]
    it.live.write(HOSTILE, "target")
    it.live.status(HOSTILE)
    shown = it.paper.shown
    assert shown[0].startswith("[bold]b[/bold] \\x1b[31mred\\x1b]0;title\\x07 \\x9b2J a\\x0db")
    assert shown[1].endswith(" end")
    assert it.paper.screen.title == ""
    it.live.close()
    assert "".join(it.paper.shown).endswith(" end")


@pytest.mark.parametrize(("before", "after"), [(40, 60), (60, 23), (40, 20)])
def test_text_goes_on_whole_after_a_resize(sheet, before: int, after: int) -> None:
    it = sheet(before, 12)
    it.live.write("a short beginning", "target")
    it.live.ghost(" of more")
    it.live.status(LINE)
    it.resize(after)
    it.live.ghost(" that nobody can place now")
    it.live.write(" and its end\n", "target")
    it.live.write("next line", "target")
    it.live.ghost(" once more")
    it.live.status(LINE)
    assert "next line once more" in it.paper.shown
    assert it.paper.shown[-1] == LINE[: after - 1].rstrip()
    it.live.close()
    assert it.paper.shown[-1] == "next line"
    assert "".join(it.paper.shown) == "".join(
        plainly("a short beginning and its end\nnext line", after, 12)
    )
