"""Conversations on disk: one file each, JSON lines that a person can read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_data_path

from specdec_cli.app.chat.conversation import Conversation
from specdec_cli.app.chat.files import reason, write_atomically
from specdec_cli.app.chat.lines import NewerVersion, NotAConversation, from_lines, to_lines
from specdec_cli.errors import SpecdecError

SUFFIX = ".jsonl"
LARGEST = 64_000_000  # bytes; more than a person and a model ever said
TITLE = 60  # characters


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
        self.directory = directory or user_data_path("specdec") / "conversations"
        self._held = ""
        self._lock: FileLock | None = None

    def path(self, id: str) -> Path:
        return self.directory / f"{id}{SUFFIX}"

    def save(self, conversation: Conversation) -> Path:
        """Write it whole, atomically; one without a question is not worth a file.

        Raises:
            ConversationError: no space, no permission, or another process holds it.
        """
        path = self.path(conversation.id)
        try:
            if not conversation.turns and not path.exists():
                return path
            self._hold(conversation.id)
            write_atomically(path, to_lines(conversation).encode())
        except OSError as error:
            raise ConversationError(
                f"the conversation could not be saved to {path}",
                why=reason(error),
                fix="make room or check the permissions: the next turn saves all of it again",
            ) from error
        return path

    def load(self, reference: str) -> Conversation:
        """By id, or the unambiguous beginning of one, to go on with it; by path, as a copy.

        Raises:
            ConversationError: missing, corrupt, of a newer version, or held by another process.
        """
        if "/" in reference or "\\" in reference or reference.endswith(SUFFIX):
            return _read(Path(reference)).copy()
        id = self._complete(reference)
        if id == self._held:
            return replace(_read(self.path(id)), id=id)
        try:
            lock = self._locked(id)
        except OSError as error:
            raise ConversationError(
                f"conversation {id} cannot be gone on with",
                why=f"{self.directory}: {reason(error)}",
                fix=f"load a copy of it: {self.path(id)}",
            ) from error
        try:
            conversation = replace(_read(self.path(id)), id=id)  # the file may have been renamed
        except BaseException:
            lock.release()
            raise
        self.release()
        self._held, self._lock = id, lock
        return conversation

    def latest(self) -> Conversation:
        """The one that was written last.

        Raises:
            ConversationError: there is none, or as `load`.
        """
        files = self._files()
        if not files:
            raise ConversationError(
                "there is no conversation to go on with",
                why=f"{self.directory} has none",
                fix="start one: specdec chat",
            )
        return self.load(files[0].stem)

    def list(self) -> tuple[Entry, ...]:
        """All of them, the last written first; unreadable ones too, with their problem."""
        return tuple(_entry(path) for path in self._files())

    def release(self) -> None:
        """Let other processes write the conversation that is held."""
        if self._lock is not None:
            self._lock.release()
        self._held, self._lock = "", None

    def _files(self) -> tuple[Path, ...]:
        """The last written first."""
        found = [(_changed(path), path) for path in self.directory.glob(f"*{SUFFIX}")]
        return tuple(path for _, path in sorted(found, reverse=True))

    def _complete(self, beginning: str) -> str:
        """The id that begins so."""
        ids = [path.stem for path in self._files()]
        matching = [id for id in ids if id.startswith(beginning)] if beginning else []
        if beginning in ids or len(matching) == 1:
            return beginning if beginning in ids else matching[0]
        raise ConversationError(
            f"there is no conversation {beginning!r}"
            if not matching
            else f"{len(matching)} conversations begin with {beginning!r}",
            why=_named(matching, ids) or f"{self.directory} has none",
            fix="/load in a chat, or specdec chat --list, shows them all",
        )

    def _hold(self, id: str) -> None:
        if id != self._held:
            lock = self._locked(id)
            self.release()
            self._held, self._lock = id, lock

    def _locked(self, id: str) -> FileLock:
        """The lock of a conversation, which a killed process has let go of too.

        Raises:
            ConversationError: another process has it.
            OSError: no lock can be had in this directory.
        """
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        locks = self.directory / "locks"
        locks.mkdir(exist_ok=True)
        lock = FileLock(locks / f"{id}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise ConversationError(
                f"conversation {id} is open elsewhere",
                why="another specdec is writing it",
                fix=f"leave that one, or load a copy: {self.path(id)}",
            ) from error
        return lock


def _read(path: Path) -> Conversation:
    """Raises:
    ConversationError: missing, unreadable, not a conversation, or of a newer version.
    """
    try:
        path = path.expanduser()
        size = path.stat().st_size
        if size > LARGEST:
            raise NotAConversation(f"it has {size:,} bytes")
        return from_lines(path.read_bytes())
    except (OSError, RuntimeError) as error:
        raise ConversationError(
            f"cannot read the conversation {path}",
            why=reason(error),
            fix="/load in a chat, or specdec chat --list, shows those that are there",
        ) from error
    except NewerVersion as error:
        raise ConversationError(
            f"{path} was written by a newer specdec", why=str(error), fix="update specdec"
        ) from error
    except ValueError as error:
        raise ConversationError(
            f"{path} is not a conversation, or damaged",
            why=str(error),
            fix="mend the line, or move the file away",
        ) from error


def _named(matching: Sequence[str], ids: Sequence[str]) -> str:
    if matching:
        return f"they are {', '.join(matching[:5])}{', …' if matching[5:] else ''}"
    return f"the latest are {', '.join(ids[:3])}" if ids else ""


def _entry(path: Path) -> Entry:
    try:
        found = _read(path)
    except ConversationError as error:
        return Entry(path.stem, path, "", 0, "", _changed(path), problem=error.why)
    first = next((m.content for m in found.messages if m.role == "user"), "")
    title = " ".join(first.split())
    if len(title) > TITLE:
        title = title[: TITLE - 1] + "…"
    return Entry(path.stem, path, found.model, found.turns, title, _changed(path))


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # gone in the meantime
        return 0.0
