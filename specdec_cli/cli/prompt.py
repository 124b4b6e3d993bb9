"""Where the prompt comes from: the argument, a file, standard input."""

from __future__ import annotations

import os
import select
import stat
import sys
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
    if wanted and sys.stdin.isatty() and not asked:
        raise UsageError("there is no prompt", fix='give one: specdec run "Why is the sky blue?"')
    if wanted or _has_data():
        parts.append(_decode(sys.stdin.buffer.read(), "standard input"))
    elif _is_open_pipe():
        notice = "standard input is a pipe with nothing in it yet and is not read (- waits for it)"
    if file is not None:
        parts.append(_decode(_read(file), str(file)))
    if text is not None:
        parts.append(text)
    prompt = "\n\n".join(part.strip("\n") for part in parts if part.strip())
    if not prompt:
        raise UsageError("the prompt is empty", fix="give some text to answer")
    return prompt, notice


def _has_data() -> bool:
    """Is there something to read from a pipe or file, without waiting for it?"""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
        if stat.S_ISREG(mode):
            return True
        readable = (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)) and bool(
            select.select([sys.stdin], [], [], 0)[0]
        )
    except (OSError, ValueError):  # closed, or not a file at all
        return False
    return readable


def _is_open_pipe() -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read the prompt file {file}", why=error.strerror or str(error)
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
