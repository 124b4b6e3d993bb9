"""Models that remember: the rows of the last call, or every row they were ever asked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from specdec_cli.engine.language_model import LanguageModel, Logits


class Recorder:
    """A model whose last rows can be looked at, until it is called again."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.vocab_size = model.vocab_size
        self.context_size = model.context_size
        self.can_roll_back = model.can_roll_back
        self.rows: Logits = np.empty((0, model.vocab_size), dtype=np.float32)

    def logits(self, tokens: Sequence[int], *, last: int) -> Logits:
        self.rows = self._model.logits(tokens, last=last)
        return self.rows

    def cached(self, tokens: Sequence[int]) -> int:
        return self._model.cached(tokens)

    def forget(self) -> None:
        self._model.forget()


def replay(
    model: LanguageModel, tokens: Sequence[int], prompt: int, *, chunk: int, width: int
) -> Logits:
    """The last row of `tokens`, evaluated from nothing in a prescribed way.

    Args:
        prompt: length of the part that is read in chunks of `chunk` tokens; the rest follows in
            steps of `width` rows.

    Returns:
        A copy, shape (vocab,).
    """
    model.forget()
    at = 0
    while at < len(tokens):
        size = min(chunk, prompt - at) if at < prompt else min(width, len(tokens) - at)
        at += size
        rows = model.logits(tokens[:at], last=1 if at <= prompt else size)
    last: Logits = rows[-1].copy()
    return last
