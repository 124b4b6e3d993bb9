"""A session's prompt cache: when to look on disk, and when to write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specdec_cli.app.chat.events import Notice, Reading
from specdec_cli.app.chat.prompt_cache import PromptCache, readers
from specdec_cli.app.session import Session
from specdec_cli.core.rounds import TARGET
from specdec_cli.engine.language_model import LanguageModel


class Memory:
    """What a session's models have read, on disk and back; nothing happens without a cache."""

    def __init__(self, session: Session, cache: PromptCache | None) -> None:
        self._cache = cache
        self._readers = readers(session) if cache else {}
        self._models: dict[str, LanguageModel] = {d.name: d.reads for d in session.drafts}
        self._models[TARGET] = session.target
        self._belongs: dict[str, str] = {}  # which conversation a model has last read
        self._kept: dict[str, list[int]] = {}  # what is on disk of it
        self._told = ""  # the conversation of which a notice was given

    def read(
        self, model: str, tokens: Sequence[int], conversation: str
    ) -> Iterator[Notice | Reading]:
        """What a model need not read of a text, after fetching what disk has of it."""
        memo = self._models[model]
        before = memo.cached(tokens)
        reader = self._readers.get(model)
        if self._cache and reader and self._belongs.get(model) != conversation:
            notice = self._cache.restore(reader, tokens, conversation)
            if notice and self._told != conversation:
                yield Notice(notice)
                self._told = conversation
            self._belongs[model] = conversation
            self._kept[model] = reader.context.memo if memo.cached(tokens) > before else []
        cached = memo.cached(tokens)
        yield Reading(model, len(tokens), min(cached, len(tokens) - 1), cached > before)

    def keep(self, conversation: str, *, grown: bool = False) -> list[str]:
        """Write what was read of a conversation.

        Args:
            grown: only what has doubled since it was written, so that a chat of n tokens writes
                about 2n of them and not n times n.

        Returns:
            What went wrong, in words.
        """
        notices: list[str] = []
        for name, reader in self._readers.items() if self._cache else ():
            read, kept = reader.context.memo, self._kept.get(name, [])
            if self._belongs.get(name) != conversation or read == kept:
                continue
            if not grown or len(read) >= 2 * len(kept):
                assert self._cache is not None
                notices.append(self._cache.keep(reader, conversation))
                self._kept[name] = read
        return [notice for notice in notices if notice]
