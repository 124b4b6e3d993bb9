"""A session's prompt cache: when to look on disk, and when to write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specdec_cli.app.chat.events import Notice, Reading
from specdec_cli.app.chat.prompt_cache import PromptCache, readers
from specdec_cli.app.session import Session
from specdec_cli.core.rounds import TARGET


class Memory:
    """What a session's models have read, on disk and back; nothing happens without a cache."""

    def __init__(self, session: Session, cache: PromptCache | None) -> None:
        self._cache = cache
        self._readers = readers(session) if cache else {}
        self._contexts = {draft.name: draft.context for draft in session.drafts}
        self._contexts[TARGET] = session.target
        self._belongs: dict[str, str] = {}  # which conversation a model has last read
        self._kept: dict[str, list[int]] = {}  # what is on disk of it
        self._told = ""  # the conversation of which a notice was given

    def read(
        self, model: str, tokens: Sequence[int], conversation: str
    ) -> Iterator[Notice | Reading]:
        """What a model need not read of a text, after fetching what disk has of it."""
        context = self._contexts[model]
        before = context.cached(tokens)
        if self._cache is not None and self._belongs.get(model) != conversation:
            notice = self._cache.restore(self._readers[model], tokens, conversation)
            if notice and self._told != conversation:
                yield Notice(notice)
                self._told = conversation
            self._belongs[model] = conversation
            self._kept[model] = context.memo if context.cached(tokens) > before else []
        cached = context.cached(tokens)
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
            memo, kept = reader.context.memo, self._kept.get(name, [])
            if self._belongs.get(name) != conversation or memo == kept:
                continue
            if not grown or len(memo) >= 2 * len(kept):
                assert self._cache is not None
                notices.append(self._cache.keep(reader, conversation))
                self._kept[name] = memo
        return [notice for notice in notices if notice]
