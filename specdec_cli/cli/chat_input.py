"""What a person types: an edited line on a terminal, plain lines from anything else."""

from __future__ import annotations

import signal
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Protocol

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, get_common_complete_suffix
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth, create_output
from prompt_toolkit.styles import Style

from specdec_cli.errors import UsageError

PROMPT, CONTINUATION = ">>> ", "... "
BLOCK = '"""'
LONGEST_IN_HISTORY = 20_000  # characters; a pasted file is no line to look for
STYLE = Style.from_dict({"prompt": "bold", "bottom-toolbar": "noreverse dim"})


class Terminated(BaseException):
    """A polite kill while waiting for input."""


class Reader(Protocol):
    """Where messages and commands come from."""

    interactive: bool

    def read(self, draft: str = "") -> str:
        """The next input, `draft` being there to edit.

        Raises:
            EOFError: there is no more.
            KeyboardInterrupt: Ctrl-C.
            Terminated: SIGTERM.
        """


class LineReader:
    r"""One message a line; a block in triple quotes is one message too."""

    interactive = False

    def read(self, draft: str = "") -> str:
        """Raises:
        EOFError: the end of input.
        UsageError: bytes that are not text.
        """
        text = self._line()
        while is_open(text):
            try:
                text += self._line()
            except EOFError:
                break
        return text.removesuffix("\n")

    def _line(self) -> str:
        line = sys.stdin.buffer.readline() if sys.stdin is not None else b""
        if not line:
            raise EOFError
        try:
            return line.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            raise UsageError(
                "standard input is not UTF-8 text",
                why=f"byte 0x{line[error.start]:02x} at offset {error.start} of a line",
                fix="convert it, for example with iconv -t utf-8",
            ) from error


class PromptReader:
    """A line that can be edited, searched for, completed and pasted into."""

    interactive = True

    def __init__(
        self, *, history: Path | None, completer: Completer, bar: Callable[[], str], colours: bool
    ) -> None:
        self._editing = False  # then Ctrl-C gives it up, and does not only empty the line
        self._session: PromptSession[str] = PromptSession(
            FormattedText([("class:prompt", PROMPT)]),
            multiline=True,
            prompt_continuation=lambda _width, _line, wraps: "" if wraps else CONTINUATION,
            history=_history(history),
            completer=completer,
            complete_while_typing=Condition(_names_a_command),
            enable_open_in_editor=True,
            tempfile_suffix=".md",
            key_bindings=_keys(completer, lambda: self._editing),
            bottom_toolbar=lambda: FormattedText([("class:bottom-toolbar.text", bar())]),
            style=STYLE,
            color_depth=None if colours else ColorDepth.DEPTH_1_BIT,
            output=create_output(always_prefer_tty=True),
        )

    def read(self, draft: str = "") -> str:
        self._editing = bool(draft)
        with _ended_by_sigterm():
            return self._session.prompt(default=draft)


def is_open(text: str) -> bool:
    """Does the text begin a block that it does not end?"""
    text = text.strip()
    return text.startswith(BLOCK) and not (len(text) > len(BLOCK) and text.endswith(BLOCK))


def unquoted(text: str) -> str | None:
    """What stands in a block; None where the text is none."""
    text = text.strip()
    if not text.startswith(BLOCK):
        return None
    return text.removeprefix(BLOCK).removesuffix(BLOCK).strip("\n")


@contextmanager
def unechoed() -> Iterator[None]:
    """Keep what is typed between prompts off the screen; it is read when its turn comes."""
    if sys.stdin is None or not sys.stdin.isatty():
        yield
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    quiet = list(before)
    quiet[0] &= ~termios.ICRNL  # or Enter would arrive as Ctrl-J
    quiet[3] &= ~(termios.ECHO | termios.ICANON)  # and Ctrl-D as nothing
    termios.tcsetattr(terminal, termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


class _File(FileHistory):
    """History on disk: private, without what is too long, and no reason to fail."""

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__(path)

    def store_string(self, string: str) -> None:
        if len(string) > LONGEST_IN_HISTORY:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch(mode=0o600)
            super().store_string(string)
        except OSError:
            pass  # a full disk must not take the line away that was just typed

    def load_history_strings(self) -> Iterator[str]:
        try:
            yield from super().load_history_strings()
        except OSError:
            return


def _history(path: Path | None) -> History:
    return InMemoryHistory() if path is None else _File(path)


def _names_a_command() -> bool:
    text = get_app().current_buffer.text
    return text.startswith("/") and text[1:2] != "/" and " " not in text


def _keys(completer: Completer, editing: Callable[[], bool]) -> KeyBindings:
    keys = KeyBindings()
    here = has_focus(DEFAULT_BUFFER)  # and not in a search

    @keys.add("enter", filter=here)
    def send(event: KeyPressEvent) -> None:
        if is_open(event.current_buffer.text):
            event.current_buffer.insert_text("\n")
        else:
            event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=here)
    @keys.add("c-j", filter=here)
    def newline(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c", filter=here)
    def clear(event: KeyPressEvent) -> None:
        if event.current_buffer.text and not editing():
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt)

    @keys.add("tab", filter=here)
    def complete(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state:
            buffer.complete_next()
            return
        found = list(completer.get_completions(buffer.document, CompleteEvent()))
        if common := get_common_complete_suffix(buffer.document, found):
            buffer.insert_text(common)
        elif found:
            buffer.start_completion()

    @keys.add("c-g", filter=here)
    def editor(event: KeyPressEvent) -> None:
        event.current_buffer.open_in_editor()

    return keys


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Leave the prompt by its own way out, which gives the terminal back as it was."""

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        app = get_app()
        if app.loop is not None and app.is_running:
            app.loop.call_soon_threadsafe(_exit_app)
        else:
            raise Terminated

    def _exit_app() -> None:
        get_app().exit(exception=Terminated)

    previous = signal.signal(signal.SIGTERM, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
