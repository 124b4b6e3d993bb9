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
    model: LanguageModel,
    tokens: Sequence[int],
    prompt: int,
    *,
    chunk: int,
    width: int,
    alone: bool = False,
) -> Logits:
    """The last row of `tokens`, evaluated from nothing in a prescribed way.

    Args:
        prompt: length of the part that is read in chunks of `chunk` tokens; the rest follows in
            steps of `width` rows, filled up with rows that mean nothing, as a draft's may.
        alone: begin a new step with the last token.

    Returns:
        A copy, shape (vocab,).
    """
    model.forget()
    at = 0
    while at < min(prompt, len(tokens)):
        at = min(at + chunk, prompt)
        rows = model.logits(tokens[:at], last=1)
    end = len(tokens) - 1 if alone else len(tokens)
    while at < len(tokens):
        size = min(width, (end if at < end else len(tokens)) - at)
        at += size
        padding = min(width - size, model.context_size - at)
        rows = model.logits([*tokens[:at], *[tokens[0]] * padding], last=size + padding)
        rows = rows[: len(rows) - padding]
    last: Logits = rows[-1].copy()
    return last
