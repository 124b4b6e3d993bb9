"""`--prompt-cache`: what models have read, kept on disk between sessions, within a bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from specdec_cli.app.chat.files import reason
from specdec_cli.app.exact import processor_key
from specdec_cli.app.session import Session
from specdec_cli.engine.llama import library, state
from specdec_cli.engine.llama.context import LlamaContext, common_prefix
from specdec_cli.engine.llama.model import LlamaModel
from specdec_cli.engine.llama.numerics import Numerics

LIMIT = 4 * 2**30  # bytes
MOST = 64  # states: the beginning of each is read when a chat begins
SUFFIX = ".state"
LEAST = 32  # tokens that are sooner read anew
DEARNESS = 16  # reading a token anew costs at least that many times fetching one from disk


@dataclass(frozen=True, slots=True)
class Reader:
    """A context, and everything that shapes what it keeps of a text.

    Attributes:
        name: `target`, or the draft's source.
        file: for file names: a conversation may change between models and come back.
        conditions: a state is of use under exactly these; fit for JSON.
    """

    name: str
    file: str
    context: LlamaContext
    conditions: Mapping[str, Any]


def readers(session: Session) -> dict[str, Reader]:
    """The target's and those of the drafts that read for themselves, by name."""
    load = session.options
    shared = {
        "context size": session.context_size,
        "thread count": session.threads,
        "choice of flash attention": load.flash_attention,
        "version of llama.cpp": {**library.versions(), "system": library.system()},
        "processor": sha256(processor_key().encode()).hexdigest()[:16],
    }

    def reader(
        name: str, model: LlamaModel, context: LlamaContext, numerics: Numerics, gpu_layers: int
    ) -> Reader:
        status = model.path.stat()
        own = {
            "model": [model.path.name, status.st_size, status.st_mtime_ns],
            "choice of kernels": {**numerics.as_dict(), "crippled": model.crippled},
            "number of GPU layers": gpu_layers,
        }
        return Reader(name, f"{name}.{model.path.stem}", context, {**own, **shared})

    found = [reader("target", session.model, session.target, load.numerics, load.gpu_layers)]
    for draft in session.drafts:
        if draft.borrows:  # it takes over what the target restores
            continue
        numerics, layers = session.draft_numerics, load.draft_gpu_layers
        found.append(reader(draft.name, draft.model, draft.context, numerics, layers))
    return {reader.name: reader for reader in found}


class PromptCache:
    """A directory of saved states, the least recently used of which make room for new ones.

    A state belongs to a conversation, but serves any text that begins as it does: the same long
    system text in a new conversation is not read again.
    """

    def __init__(self, directory: Path | None = None, *, limit: int = LIMIT) -> None:
        """`directory` defaults to the user's cache directory."""
        self.directory = directory or user_cache_path("specdec") / "prompts"
        self.limit = limit

    @property
    def size(self) -> int:
        """Bytes of all states."""
        return sum(_status(path)[1] for path in self._files())

    def restore(self, reader: Reader, tokens: Sequence[int], conversation: str) -> str:
        """Put the state that spares the most of `tokens` into the context, if that pays.

        Returns:
            What a person should know: this conversation's own state is damaged, or was made under
            other conditions. Empty where there is nothing to say.
        """
        own = self._path(conversation, reader)
        found: list[tuple[int, Path, state.Head]] = []
        notice = ""
        for path in self._files():
            try:
                head = state.read_head(path)
            except (state.Corrupt, OSError) as error:
                notice = self._discard(path, error) if path == own else notice
                continue
            if head.conditions != reader.conditions:
                notice = _stale(head, reader) if path == own else notice
                continue
            shared = common_prefix(head.memo, list(tokens))
            if not reader.context.can_roll_back and shared < len(head.memo):
                continue
            gain = shared - reader.context.cached(tokens)
            if gain >= max(LEAST, len(head.memo) // DEARNESS):
                found.append((shared, path, head))
        for _, path, head in sorted(found, key=lambda entry: entry[0], reverse=True):
            try:
                state.restore(path, head, reader.context)
                path.touch()
            except (state.Corrupt, OSError) as error:
                notice = self._discard(path, error)
            else:
                break
        return notice

    def keep(self, reader: Reader, conversation: str) -> str:
        """Save what the context has read; older states make room.

        Returns:
            Why it could not be kept, for people; empty where it was, or nothing was worth it.
        """
        if len(reader.context.memo) < LEAST:
            return ""
        path = self._path(conversation, reader)
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            state.write(path, reader.context, reader.conditions)
            if (size := path.stat().st_size) > self.limit:
                path.unlink()
                return f"the prompt cache has no room for {_mib(size)}: not kept"
            self._make_room(path)
        except OSError as error:
            return f"the prompt cache could not be written: {reason(error)}"
        return ""

    def _make_room(self, kept: Path) -> None:
        """Delete the least recently used until the rest is within the limits."""
        files = sorted(self._files(), key=_status)
        total, left = self.size, len(files)
        for path in files:
            if total <= self.limit and left <= MOST:
                return
            if path != kept:
                total, left = total - _status(path)[1], left - 1
                path.unlink(missing_ok=True)

    def _discard(self, path: Path, error: Exception) -> str:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return f"a prompt cache is damaged ({reason(error)}) and was deleted: the text is read anew"

    def _files(self) -> list[Path]:
        return list(self.directory.glob(f"*{SUFFIX}"))

    def _path(self, conversation: str, reader: Reader) -> Path:
        return self.directory / f"{conversation}.{reader.file}{SUFFIX}"


def _stale(head: state.Head, reader: Reader) -> str:
    keys = [key for key, value in reader.conditions.items() if head.conditions.get(key) != value]
    return f"the prompt cache was made with another {keys[0]}: the text is read anew"


def _status(path: Path) -> tuple[float, int]:
    """When it was last used, and its bytes; (0, 0) where it is gone."""
    try:
        status = path.stat()
    except OSError:
        return 0.0, 0
    return status.st_mtime, status.st_size


def _mib(size: int) -> str:
    return f"{size / 2**20:,.0f} MiB"
