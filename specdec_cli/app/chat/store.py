"""Conversations on disk: one file each, JSON lines that a person can read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from specdec_cli.app.chat.conversation import Conversation
from specdec_cli.errors import SpecdecError

FORMAT = "specdec-chat"
VERSION = 1


class ConversationError(SpecdecError):
    """A conversation that cannot be read or written: corrupt, newer, missing, busy, disk full."""

    code, type = 2, "conversation"


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the list of conversations.

    Attributes:
        title: the beginning of the first question, one line.
        changed: seconds since 1970.
        problem: why it cannot be read; empty where it can.
    """

    id: str
    path: Path
    model: str
    turns: int
    title: str
    changed: float
    problem: str = ""


class Store:
    """A directory of conversations.

    One conversation at a time is held: a lock keeps other processes from writing it, from its
    first `save` or `load` by id until another one is held or `release`.
    """

    def __init__(self, directory: Path | None = None) -> None:
        """`directory` defaults to the user's data directory."""
        raise NotImplementedError

    def save(self, conversation: Conversation) -> Path:
        """Write it whole, atomically; one without a question is not worth a file.

        Raises:
            ConversationError: no space, no permission, or another process holds it.
        """
        raise NotImplementedError

    def load(self, reference: str) -> Conversation:
        """By id, or the unambiguous beginning of one, to go on with it; by path, as a copy.

        Raises:
            ConversationError: missing, corrupt, of a newer version, or held by another process.
        """
        raise NotImplementedError

    def latest(self) -> Conversation:
        """The one that was written last.

        Raises:
            ConversationError: there is none, or as `load`.
        """
        raise NotImplementedError

    def list(self) -> list[Entry]:
        """All of them, the last written first; unreadable ones too, with their problem."""
        raise NotImplementedError

    def release(self) -> None:
        """Let other processes write the conversation that is held."""
        raise NotImplementedError
