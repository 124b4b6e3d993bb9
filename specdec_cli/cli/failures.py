"""Errors as a person sees them: what, why, fix; and an exit code that scripts can rely on."""

from __future__ import annotations

import json
import os
import sys
import traceback

import typer

from specdec_cli.errors import SpecdecError, UsageError

INTERRUPTED, TERMINATED, CLOSED_PIPE = 130, 143, 141
BUG = 1


def report(error: BaseException, *, as_json: bool) -> int:
    """Print an error and return the exit code that belongs to it."""
    if os.environ.get("SPECDEC_DEBUG"):
        traceback.print_exception(error)
    if not isinstance(error, SpecdecError):
        error = _as_bug(error)
    for line in (
        f"error: {error.message}",
        f"  {error.why}" if error.why else "",
        f"  fix: {error.fix}" if error.fix else "",
    ):
        if line:
            print(line, file=sys.stderr)  # noqa: T201
    if as_json:
        body = {
            "code": error.code,
            "type": error.type,
            "message": error.message,
            "hint": error.fix or error.why,
        }
        print(json.dumps({"error": body}, ensure_ascii=False))  # noqa: T201
    return error.code


def usage_error(error: Exception) -> UsageError:
    """Click's complaint about the command line, in our form."""
    context: typer.Context | None = getattr(error, "ctx", None)
    command = context.command_path if context else "specdec"
    message = str(getattr(error, "format_message", lambda: str(error))()).strip().rstrip(".")
    what, _, why = message.partition(". ")
    return UsageError(_lowered(what), why=_lowered(why), fix=f"see {command} --help")


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def _as_bug(error: BaseException) -> SpecdecError:
    return SpecdecError(
        f"unexpected {type(error).__name__}: {' '.join(str(error).split())}",
        why="this is a bug in specdec",
        fix="set SPECDEC_DEBUG=1 to see where, and report it",
    )
