"""Errors as a person sees them: what, why, fix; and an exit code that scripts can rely on."""

from __future__ import annotations

import errno
import json
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import typer

from specdec_cli.cli.console import harmless
from specdec_cli.cli.settings import ORIGINS
from specdec_cli.errors import SpecdecError, UsageError

INTERRUPTED, TERMINATED, CLOSED_PIPE = 130, 143, 141


def report(error: BaseException, *, as_json: bool) -> int:
    """Print an error and return the exit code that belongs to it."""
    if os.environ.get("SPECDEC_DEBUG"):
        traceback.print_exception(error)
    if is_full_disk(error):
        error = SpecdecError(
            "the output cannot be written", why="the disk is full", fix="free some space, try again"
        )
    if not isinstance(error, SpecdecError):
        error = _as_bug(error)
    for line in (f"error: {error.message}", f"  {error.why}", f"  fix: {error.fix}"):
        print(harmless(line), file=sys.stderr)  # noqa: T201  # a file's own words may be in it
    if as_json:
        print(json.dumps({"error": as_document(error)}))  # noqa: T201
    return error.code


def as_document(error: SpecdecError) -> dict[str, Any]:
    """What `error` holds in a JSON document."""
    return {
        "code": error.code,
        "type": error.type,
        "message": error.message,
        "hint": error.fix,
    }


def is_full_disk(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def usage_error(error: Exception, arguments: Sequence[str]) -> UsageError:
    """Click's complaint about the command line, in our form: with the value and its origin."""
    context: typer.Context | None = getattr(error, "ctx", None)
    parameter = getattr(error, "param", None)
    message = _one_line(getattr(error, "message", "") or str(error))
    fix = f"see {context.command_path if context else 'specdec'} --help"
    if parameter is None:
        what, _, why = message.rstrip(".)").replace(" (", ". ").partition(". ")
        why = _lowered(why) or "the command line cannot be read that way"
        return UsageError(_lowered(what), why=why, fix=fix)
    if type(error).__name__ == "MissingParameter":
        name = str(parameter.name).upper()
        return UsageError(f"{name} is missing", why="the command cannot do without it", fix=fix)
    name = next((opt for opt in parameter.opts if opt.startswith("--")), parameter.name)
    value, origin = _given(context, parameter, arguments)
    what = f"{name} cannot be {value!r}" if value is not None else f"{name} has a wrong value"
    message = message.removeprefix("Value error, ").rstrip(".")
    allowed, _, _ = message.removeprefix("Input should be ").partition(", unable")
    why = f"it must be {allowed}" if message.startswith("Input should") else _lowered(allowed)
    return UsageError(what, why=why + origin, fix=fix)


def _given(
    context: typer.Context | None, parameter: Any, arguments: Sequence[str]
) -> tuple[str | None, str]:
    """The value that was refused, and where it stands if that is not the command line."""
    for i, argument in enumerate(arguments):
        if argument in parameter.opts and i + 1 < len(arguments):
            return arguments[i + 1], ""
        if argument.startswith(tuple(f"{opt}=" for opt in parameter.opts)):
            return argument.partition("=")[2], ""
    if parameter.envvar and parameter.envvar in os.environ:
        return os.environ[parameter.envvar], f" (from {parameter.envvar})"
    if context is not None and context.default_map and parameter.name in context.default_map:
        origin = context.meta.get(ORIGINS, {}).get(parameter.name, "the configuration")
        return str(context.default_map[parameter.name]), f" (from {origin})"
    return None, ""


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def _as_bug(error: BaseException) -> SpecdecError:
    return SpecdecError(
        f"unexpected {type(error).__name__}: {_one_line(str(error))}",
        why="this is a bug in specdec",
        fix="set SPECDEC_DEBUG=1 to see where, and report it",
    )
