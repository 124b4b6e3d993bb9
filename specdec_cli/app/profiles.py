"""Write a profile into the user's configuration, and leave everything else in it as it is."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from specdec_cli.app.configuration import PROFILES, user_file
from specdec_cli.errors import UsageError

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
HEADER = re.compile(r"\s*\[")
Values = Mapping[str, str | int | bool]


def check(name: str) -> None:
    """Could a profile be written? Asked before minutes of work go into it.

    Raises:
        UsageError: a name that would need quotes, or a file that cannot be read or changed.
    """
    if not NAME.fullmatch(name):
        raise UsageError(
            f"a profile cannot be called {name!r}",
            why="a name has letters, digits, - and _",
            fix="for example --profile-name tuned",
        )
    _changed(user_file(), name, {}, "")


def write_profile(name: str, values: Values, *, comment: str = "") -> Path:
    """Add the table `[profiles.NAME]` to the user's configuration, or replace it.

    The change is made to the text, so that comments and order stay, and is checked by reading the
    result before anything is written.

    Returns:
        The file.

    Raises:
        UsageError: the file cannot be read, changed or written; it is as it was then.
    """
    file = user_file()
    text = _changed(file, name, values, comment)
    try:
        _replace(file, text)
    except OSError as error:
        raise UsageError(
            f"cannot write {file}",
            why=error.strerror or str(error),
            fix="put the lines above there yourself",
        ) from error
    return file


def _changed(file: Path, name: str, values: Values, comment: str) -> str:
    text = _text(file)
    before = _parsed(text, file)
    changed = with_table(text, name, table(name, values, comment=comment))
    try:
        same = tomllib.loads(changed) == _with_profile(before, name, values)
    except tomllib.TOMLDecodeError:
        same = False
    if not same:
        raise UsageError(
            f"cannot write the profile {name} into {file}",
            why="its profiles are written in a way that only you can change",
            fix="choose another --profile-name, or --dry-run, which prints the lines",
        )
    return changed


def table(name: str, values: Values, *, comment: str = "") -> str:
    """A profile as TOML."""
    lines = [f"[{PROFILES}.{name}]", *([f"# {comment}"] if comment else [])]
    lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    return "\n".join(lines) + "\n"


def with_table(text: str, name: str, new: str) -> str:
    """`text` with a table of that name replaced, or added at the end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    new = new.replace("\n", newline)
    lines = text.splitlines(keepends=True)
    own = re.compile(rf"""\s*\[\s*{PROFILES}\s*\.\s*["']?{re.escape(name)}["']?\s*\]""")
    start = next((i for i, line in enumerate(lines) if own.match(line)), None)
    if start is None:
        gap = newline if text.endswith("\n") else 2 * newline
        return f"{text}{gap if text else ''}{new}"
    end = next((i for i in range(start + 1, len(lines)) if HEADER.match(lines[i])), len(lines))
    while end > start + 1 and not _is_setting(lines[end - 1]):
        end -= 1  # what stands before the next table belongs to that
    return "".join([*lines[:start], new, *lines[end:]])


def _is_setting(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _with_profile(before: Mapping[str, Any], name: str, values: Values) -> dict[str, Any]:
    profiles = before.get(PROFILES, {})
    others = profiles if isinstance(profiles, dict) else {}
    return {**before, PROFILES: {**others, name: dict(values)}}


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, error) from error


def _parsed(text: str, file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: Exception) -> UsageError:
    return UsageError(
        f"cannot read the configuration in {file}", why=str(error), fix="mend or move the file"
    )


def _replace(file: Path, text: str) -> None:
    """In one step, and through a link to where the file really is."""
    real = file.resolve()
    part = real.with_name(f".{real.name}.{os.getpid()}")
    real.parent.mkdir(parents=True, exist_ok=True)
    try:
        part.write_bytes(text.encode("utf-8"))
        with suppress(FileNotFoundError):
            part.chmod(real.stat().st_mode)
        part.replace(real)
    finally:
        part.unlink(missing_ok=True)
