"""A language model small enough to enumerate: every row is looked up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np

from specdec_cli.core.distribution import Row
from specdec_cli.core.options import SamplingOptions
from specdec_cli.engine.language_model import Logits
from specdec_cli.errors import EvaluationError

PLAIN = SamplingOptions(temp=1.0, top_k=0, top_p=1.0, min_p=0.0)  # the model's own law

Rows: TypeAlias = Callable[[tuple[int, ...]], Row]
"""The logits after a sequence of tokens."""


@dataclass
class TableModel:
    """A pure function from tokens to a row, with no memo to get wrong."""

    rows: Rows
    vocab_size: int
    context_size: int = 4096
    can_roll_back: bool = True

    def logits(self, tokens: Sequence[int], *, last: int) -> Logits:
        if len(tokens) > self.context_size:
            raise EvaluationError(
                "the context is full", why="a table has its limit", fix="ask less"
            )
        prefixes = range(len(tokens) - last + 1, len(tokens) + 1)
        return np.stack([self.rows(tuple(tokens[:size])) for size in prefixes])

    def cached(self, tokens: Sequence[int]) -> int:
        return 0

    def forget(self) -> None:
        pass


def random_rows(seed: int, vocab: int, *, order: int = 3, banned: float = 0.0) -> Rows:
    """Log-probabilities that depend on the last `order` tokens; a share of the ids is banned."""

    @cache
    def row(context: tuple[int, ...]) -> Row:
        generator = np.random.default_rng([seed, *context])
        logits = np.log(generator.dirichlet(np.full(vocab, 0.7)) + 1e-6)
        closed = generator.random(vocab) < banned
        closed[generator.integers(vocab)] = False
        return np.where(closed, -np.inf, logits).astype(np.float32)

    return lambda tokens: row(tokens[-order:])


def random_model(seed: int, vocab: int, *, order: int = 3, context_size: int = 4096) -> TableModel:
    return TableModel(random_rows(seed, vocab, order=order), vocab, context_size)
