"""Files that a person names in a chat: text to read, and files to write."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from stat import S_ISREG

from specdec_cli.errors import UsageError

LARGEST = 1_000_000  # bytes; about 250,000 tokens, more than most contexts hold


def read_text_file(path: Path) -> str:
    """The text of a file, for `/read`. `~` is the home directory.

    Raises:
        UsageError: missing, not a regular file, more than LARGEST bytes, or not UTF-8 text.
    """
    try:
        path = path.expanduser()
        status = path.stat()
        if not S_ISREG(status.st_mode):  # a device or a pipe might never end
            raise UsageError(
                f"cannot read {path}", why="it is not a regular file", fix="name a text file"
            )
        if status.st_size > LARGEST:
            raise UsageError(
                f"{path} is too large to read into a chat",
                why=f"it has {status.st_size:,} bytes, the limit is {LARGEST:,}",
                fix="cut out the part that matters",
            )
        data = path.read_bytes()
    except (OSError, RuntimeError, ValueError) as error:  # also no home, and a NUL in the name
        raise UsageError(
            f"cannot read {path}", why=reason(error), fix="check the path and its permissions"
        ) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_text(path, f"byte {error.start} is not UTF-8") from error
    if "\0" in text:
        raise _not_text(path, f"there is a zero byte at {data.index(0)}")
    return text


def write_new_file(path: Path, text: str, *, overwrite: bool = False) -> Path:
    """Write a file for `/save` and `/export`, atomically; the path as it was understood.

    Raises:
        UsageError: it exists and `overwrite` is not set, or it cannot be written.
    """
    try:
        path = path.expanduser()
        if path.exists() and not overwrite:
            raise UsageError(
                f"{path} exists",
                why="it is not overwritten unasked",
                fix="choose another name, or put -f first",
            )
        write_atomically(path, text.encode("utf-8", "replace"))
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(
            f"cannot write {path}",
            why=reason(error),
            fix="check the path, its permissions and the free space",
        ) from error
    return path


def write_atomically(path: Path, data: bytes) -> None:
    """The old file or the new one, never half of one, whatever happens meanwhile.

    Raises:
        OSError: no space, no permission, no such directory; the old file is as it was.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def reason(error: Exception) -> str:
    """What the system said, without the path and the number."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _not_text(path: Path, why: str) -> UsageError:
    return UsageError(f"{path} is not a text file", why=why, fix="name a text file in UTF-8")
