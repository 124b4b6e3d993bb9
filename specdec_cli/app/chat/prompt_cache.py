"""`--prompt-cache`: what models have read, kept on disk between sessions, within a bound."""

from __future__ import annotations

from pathlib import Path

LIMIT = 4 * 2**30  # bytes


class PromptCache:
    """A directory of saved states, the least recently used of which make room for new ones."""

    def __init__(self, directory: Path | None = None, *, limit: int = LIMIT) -> None:
        """`directory` defaults to the user's cache directory."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """Bytes of all states."""
        raise NotImplementedError
