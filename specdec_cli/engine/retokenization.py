"""The text so far, in a draft's own tokens."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from specdec_cli.engine.language_model import Vocabulary

STABLE_TAIL = 64  # characters at the end that the next token may still change the cutting of


class Retokenizer:
    """Translates target tokens to draft tokens, by way of the text they stand for.

    Text up to a word's beginning is translated once and kept; only the tail is cut anew, so a
    round costs as much as its own tokens. Where the cut is not the draft's favourite, that costs
    acceptance and never exactness.
    """

    def __init__(self, target: Vocabulary, draft: Vocabulary) -> None:
        self._target = target
        self._draft = draft
        self._start()

    def _start(self) -> None:
        self._tokens: list[int] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._settled: list[int] = []
        self._tail = ""

    def translate(self, tokens: Sequence[int]) -> list[int]:
        """Draft ids of the text of `tokens`; empty while it ends inside a character.

        Half a character must not reach the tokenizer: llama.cpp may throw on it.
        """
        known = len(self._tokens)
        if list(tokens[:known]) != self._tokens:
            self._start()
            known = 0
        new = list(tokens[known:])
        self._tokens += new
        self._tail += self._decoder.decode(b"".join(self._target.spelling(t) for t in new))
        if self._decoder.getstate()[0]:
            return []
        self._settle()
        return [*self._settled, *self._draft.tokenize(self._tail, special=True)]

    def _settle(self) -> None:
        boundary = self._tail.rfind(" ", 0, max(0, len(self._tail) - STABLE_TAIL))
        if boundary > 0:
            self._settled += self._draft.tokenize(self._tail[:boundary], special=True)
            self._tail = self._tail[boundary:]
