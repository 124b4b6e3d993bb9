"""Where the prompt comes from: the argument, a file, standard input."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Callable
from pathlib import Path

from specdec_cli.errors import UsageError

STDIN = "-"


def read_prompt(argument: str | None, option: str | None, file: Path | None) -> tuple[str, str]:
    """The parts that are there, standard input first, a blank line between them.

    Returns:
        The prompt, and a notice for the user (empty where there is nothing to say).

    Raises:
        UsageError: no prompt, two at once, or bytes that are not text.
    """
    if argument is not None and option is not None:
        raise UsageError(
            "the prompt is given twice", why="as an argument and with -p", fix="give one of them"
        )
    text = argument if argument is not None else option
    asked = text == STDIN or (file is not None and str(file) == STDIN)
    if text == STDIN:
        text = None
    if file is not None and str(file) == STDIN:
        file = None
    wanted = asked or (text is None and file is None)
    notice = ""
    parts: list[str] = []
    if wanted and not asked and (sys.stdin is None or sys.stdin.isatty()):
        raise UsageError(
            "there is no prompt",
            why="neither an argument, nor a file, nor anything on standard input",
            fix='give one: specdec run "Why is the sky blue?"',
        )
    if wanted or _has_data():
        parts.append(_decode(_read_stdin(), "standard input"))
    elif _is_open_pipe():
        notice = "standard input is a pipe with nothing in it yet and is not read (- waits for it)"
    if file is not None:
        parts.append(_decode(_read(file), str(file)))
    if text is not None:
        parts.append(text)
    prompt = "\n\n".join(part.strip("\n") for part in parts if part.strip())
    if not prompt:
        raise UsageError(
            "the prompt is empty",
            why="there is no text in what was given",
            fix='give some: specdec run "Why is the sky blue?"',
        )
    return prompt, notice


def _read_stdin() -> bytes:
    return sys.stdin.buffer.read() if sys.stdin is not None else b""


def _has_data() -> bool:
    """Is there something to read from a pipe or file, without waiting for it?"""
    if _stdin_is(stat.S_ISREG):
        return True
    waiting = _stdin_is(stat.S_ISFIFO) or _stdin_is(stat.S_ISSOCK)
    return waiting and bool(select.select([sys.stdin], [], [], 0)[0])


def _is_open_pipe() -> bool:
    return _stdin_is(stat.S_ISFIFO)


def _stdin_is(kind: Callable[[int], bool]) -> bool:
    try:
        return sys.stdin is not None and kind(os.fstat(sys.stdin.fileno()).st_mode)
    except (OSError, ValueError):  # closed, or not a file at all
        return False


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read the prompt file {file}",
            why=error.strerror or str(error),
            fix="check the path and its permissions",
        ) from error


def _decode(data: bytes, origin: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{origin} is not UTF-8 text",
            why=f"byte 0x{data[error.start]:02x} at offset {error.start}",
            fix="convert it, for example with iconv -t utf-8",
        ) from error
