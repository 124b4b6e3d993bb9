"""Sets of prompts: those that come with specdec, and files of one JSON object a line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any

from specdec_cli.errors import UsageError

FIELDS = ("prompt", "category", "system")


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
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read the prompts in {path}",
            why=error.strerror or str(error),
            fix="check the path and its permissions",
        ) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"{path}, line {line} is not UTF-8 text",
            why=f"byte 0x{data[error.start]:02x} at offset {error.start}",
            fix="convert it, for example with iconv -t utf-8",
        ) from error
    return parse(text, str(path))


def parse(text: str, origin: str) -> list[Prompt]:
    """The prompts of a text with one JSON object a line; blank lines are left out.

    Raises:
        UsageError: as `read_file`.
    """
    lines = text.split("\n")  # str.splitlines would cut at U+2028, which JSON texts may contain
    prompts = [
        _prompt(line, f"{origin}, line {number}")
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]
    if not prompts:
        raise UsageError(
            f"there are no prompts in {origin}",
            why="it has no line with anything on it",
            fix='write lines {"prompt": "..."}',
        )
    return prompts


def _prompt(line: str, where: str) -> Prompt:
    try:
        entry: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{where} is not JSON", why=str(error), fix='write lines {"prompt": "..."}'
        ) from error
    entry = entry if isinstance(entry, dict) else {}
    _check_spelling(entry, where)
    if entry.get("prompt") is None:
        raise UsageError(
            f"{where} has no prompt",
            why="each line is an object with a text named `prompt`",
            fix='write {"prompt": "...", "category": "..."}',
        )
    fields = {key: entry[key] for key in FIELDS if entry.get(key) is not None}
    if not all(isinstance(value, str) for value in fields.values()):
        raise UsageError(
            f"{where} has a value that is not a text",
            why="`prompt`, `category` and `system` are texts",
            fix="put the value in quotes",
        )
    prompt = Prompt(**fields)
    if not prompt.prompt.strip():
        raise UsageError(
            f"{where} has an empty prompt",
            why="there is nothing in it to answer",
            fix="write one, or take the line out",
        )
    if not prompt.category.strip() or not prompt.category.isprintable():
        raise UsageError(
            f"{where} has no usable category",
            why="it names a row of the report: a word or two on one line",
            fix='write for example "category": "code", or leave it out',
        )
    return prompt


def _check_spelling(entry: dict[str, Any], where: str) -> None:
    """Other people's files have fields of their own; one that nearly is ours would be lost."""
    for key in entry:
        if key in FIELDS:
            continue
        if near := get_close_matches(key.lower(), FIELDS, n=1, cutoff=0.8):
            raise UsageError(
                f"unknown key {key!r} in {where}",
                why="the keys are `prompt`, `category` and `system`",
                fix=f"did you mean {near[0]!r}?",
            )
