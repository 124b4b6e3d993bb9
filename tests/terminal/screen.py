"""A terminal that a test can read: pexpect runs the command in it, pyte draws what it writes."""

from __future__ import annotations

from collections.abc import Mapping

import pexpect
import pyte
from command import PATIENCE, command, environment
from rich.cells import cell_len


class Emulator(pyte.HistoryScreen):
    """pyte, but a wide character that does not fit its row goes to the next, as on terminals."""

    def draw(self, data: str) -> None:
        for character in data:
            if cell_len(character) == 2 and self.cursor.x == self.columns - 1:
                self.cursor.x = self.columns
            super().draw(character)


class Screen:
    """One run on a terminal of `columns` x `lines`, both streams on it."""

    def __init__(
        self,
        *arguments: object,
        columns: int = 80,
        lines: int = 24,
        env: Mapping[str, str] | None = None,
        shell: str | None = None,
        program: list[str] | None = None,
    ) -> None:
        program = program or (["/bin/sh", "-c", shell] if shell else command(*arguments))
        self.raw = ""
        self._screen = Emulator(columns, lines, history=1000)
        self._stream = pyte.Stream(self._screen)
        self._child = pexpect.spawn(
            program[0],
            program[1:],
            dimensions=(lines, columns),
            env=environment(env),
            encoding="utf-8",
            timeout=PATIENCE,
        )
        self._child.delaybeforesend = None
        self._child.logfile_read = self  # draws whatever is read, when it is read
        self._screen.write_process_input = self.type  # where the cursor is, if asked

    def write(self, text: str) -> None:
        self.raw += text
        self._stream.feed(text)

    def flush(self) -> None:
        pass

    def wait_for(self, text: str) -> None:
        """Read until the text has been written."""
        self._child.expect_exact(text)

    def type(self, text: str) -> None:
        self._child.send(text)

    def resize(self, columns: int) -> None:
        self._screen.resize(columns=columns)
        self._child.setwinsize(self._screen.lines, columns)

    def interrupt(self) -> None:
        self._child.sendintr()

    def signal(self, number: int) -> None:
        self._child.kill(number)

    def end(self) -> int:
        """Read to the end; the exit code."""
        self._child.expect(pexpect.EOF)
        self._child.close()
        assert "Traceback" not in self.raw, self.raw
        assert self._child.signalstatus is None, self._child.signalstatus
        return int(self._child.exitstatus)

    def close(self) -> None:
        self._child.close(force=True)

    @property
    def lines(self) -> list[str]:
        """What stands on the screen and above it, without blank lines at the end."""
        above = ["".join(line[x].data for x in range(self._screen.columns)) for line in self._top]
        lines = [line.rstrip() for line in [*above, *self._screen.display]]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    @property
    def text(self) -> str:
        """All of it without line ends, as one reads text that wraps."""
        return "".join(self.lines)

    def coloured(self, colour: str) -> str:
        """The characters shown in one colour, in order."""
        return "".join(
            row[x].data
            for row in [*self._top, *(self._screen.buffer[y] for y in range(self._screen.lines))]
            for x in range(self._screen.columns)
            if row[x].fg == colour and row[x].data.strip()
        )

    @property
    def title(self) -> str:
        return str(self._screen.title)

    @property
    def _top(self) -> list[Mapping[int, pyte.screens.Char]]:
        return list(self._screen.history.top)
