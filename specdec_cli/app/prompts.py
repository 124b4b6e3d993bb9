"""Sets of prompts: those that come with specdec, and files of one JSON object a line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from specdec_cli.errors import UsageError


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request, and what kind of work it is."""

    prompt: str
    category: str = "prompt"
    system: str | None = None


def built_in(name: str) -> list[Prompt]:
    """A set from the package's data."""
    resource = files("specdec_cli.app") / "data" / f"{name}.jsonl"
    return parse(resource.read_text("utf-8"), f"{name}.jsonl")


def read_file(path: Path) -> list[Prompt]:
    """Raises:
    UsageError: unreadable, empty, or a line that is not a prompt, named by its number.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"cannot read the prompts in {path}", why=str(error), fix="check the path"
        ) from error
    return parse(text, str(path))


def parse(text: str, origin: str) -> list[Prompt]:
    prompts = [
        _prompt(line, f"{origin}, line {number}")
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip()
    ]
    if not prompts:
        raise UsageError(
            f"there are no prompts in {origin}",
            why="it has no lines",
            fix='write lines {"prompt": "..."}',
        )
    return prompts


def _prompt(line: str, where: str) -> Prompt:
    try:
        entry: Any = json.loads(line)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"{where} is not JSON", why=str(error), fix='write lines {"prompt": "..."}'
        ) from error
    if not isinstance(entry, dict) or not isinstance(entry.get("prompt"), str):
        raise UsageError(
            f"{where} has no prompt",
            why="each line is an object with a text named `prompt`",
            fix='write {"prompt": "...", "category": "..."}',
        )
    fields = {key: entry[key] for key in ("prompt", "category", "system") if key in entry}
    if not all(isinstance(value, str) for value in fields.values()):
        raise UsageError(
            f"{where} has a value that is not a text",
            why="`prompt`, `category` and `system` are texts",
            fix="put the value in quotes",
        )
    return Prompt(**fields)
