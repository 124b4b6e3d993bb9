"""Files that a person names in a chat: text to read, and files to write."""

from __future__ import annotations

from pathlib import Path

LARGEST = 1_000_000  # bytes; about 250,000 tokens, more than most contexts hold


def read_text_file(path: Path) -> str:
    """The text of a file, for `/read`. `~` is the home directory.

    Raises:
        UsageError: missing, not a regular file, more than LARGEST bytes, or not UTF-8 text.
    """
    raise NotImplementedError


def write_new_file(path: Path, text: str, *, overwrite: bool = False) -> Path:
    """Write a file for `/save` and `/export`, atomically; the path as it was understood.

    Raises:
        UsageError: it exists and `overwrite` is not set, or it cannot be written.
    """
    raise NotImplementedError
