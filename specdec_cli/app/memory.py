"""Earlier answers, kept for the suffix drafter by whoever asks for it with `--memory`.

Token ids in a file for each vocabulary, readable by its owner alone, bounded, and safe under
several processes: each change is made under a lock and replaces the file in one step.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_data_path

VERSION = 1
MOST = 200_000  # tokens kept for a vocabulary; the oldest answers go first
LEAST = 8  # tokens that an answer must have to be worth keeping
PATIENCE = 5.0  # seconds to wait for another process

Texts = list[list[int]]


@dataclass(frozen=True, slots=True)
class Recalled:
    """What was kept, the oldest first; `problem` says in words why nothing could be used."""

    texts: Texts
    problem: str = ""


def recall(vocabulary: str) -> Recalled:
    """Never an error: an answer goes on without.

    Args:
        vocabulary: digest of the token texts.
    """
    file = _file(vocabulary)
    try:
        return Recalled(_parsed(file.read_bytes()))
    except FileNotFoundError:
        return Recalled([])
    except OSError as error:
        return Recalled([], f"cannot be read ({error.strerror}: {file})")
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return Recalled([], "is damaged and begins anew")


def add(vocabulary: str, tokens: Sequence[int]) -> str:
    """Keep an answer; why that failed, in words, or nothing.

    An answer that is kept already counts as new again.
    """
    if len(tokens) < LEAST:
        return ""
    file = _file(vocabulary)
    new = list(tokens)[-MOST:]
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with FileLock(file.with_suffix(".lock"), timeout=PATIENCE, mode=0o600):
            texts = [text for text in recall(vocabulary).texts if text != new]
            _write(file, _bounded([*texts, new]))
    except Timeout:
        return "is in use by another process"
    except OSError as error:
        return f"cannot be written ({error.strerror}: {file.parent})"
    return ""


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept for one vocabulary."""

    path: Path
    answers: int
    tokens: int
    size: int  # bytes


def kept() -> Iterator[Kept]:
    for file in sorted(directory().glob("*.json")):
        try:
            texts, size = recall(file.stem).texts, file.stat().st_size
        except OSError:  # deleted just now
            continue
        yield Kept(file, len(texts), sum(map(len, texts)), size)


def clear() -> int:
    """Delete everything; how many files there were. Raises OSError where that is not allowed."""
    files = list(directory().glob("*.json"))
    for file in [*files, *directory().glob("*.lock"), *directory().glob("*.part")]:
        file.unlink(missing_ok=True)
    return len(files)


def directory() -> Path:
    return user_data_path("specdec") / "memory"


def _bounded(texts: Texts) -> Texts:
    """The newest that fit."""
    room, first = MOST, len(texts)
    while first and len(texts[first - 1]) <= room:
        first -= 1
        room -= len(texts[first])
    return texts[first:]


def _parsed(data: bytes) -> Texts:
    """Raises:
    ValueError, KeyError, TypeError: not what `_write` wrote.
    """
    known = json.loads(data)
    texts: Texts = known["texts"]
    ids = (token for text in texts for token in text)
    if known["version"] != VERSION or not all(type(token) is int and token >= 0 for token in ids):
        raise ValueError("not a memory")
    return texts


def _write(file: Path, texts: Texts) -> None:
    part = file.with_suffix(f".{os.getpid()}.part")
    part.unlink(missing_ok=True)
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as output:
            json.dump({"version": VERSION, "texts": texts}, output, separators=(",", ":"))
        part.replace(file)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _file(vocabulary: str) -> Path:
    return directory() / f"{vocabulary[:16]}.json"
