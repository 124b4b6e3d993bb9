"""Language models small enough to know by heart, and drafters and policies to go with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import TypeAlias

import numpy as np

from specdec_cli.core.chance import Chance
from specdec_cli.core.distribution import Row
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.rounds import Guess, Proposal, Round
from specdec_cli.engine.drafters import Drafter
from specdec_cli.engine.language_model import LanguageModel, Logits
from specdec_cli.errors import EvaluationError

PLAIN = SamplingOptions(temp=1.0, top_k=0, top_p=1.0, min_p=0.0)  # the model's own law
GREEDY = SamplingOptions(temp=0.0)

Rows: TypeAlias = Callable[[tuple[int, ...]], Row]
"""The logits after a sequence of tokens."""


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


def fixed_rows(probs: Sequence[float]) -> Rows:
    """The same law after whatever tokens."""
    row = np.log(np.asarray(probs)).astype(np.float32)
    return lambda tokens: row


@dataclass
class TableModel:
    """A pure function from tokens to a row, with no memo to get wrong."""

    rows: Rows
    vocab_size: int
    context_size: int = 4096
    can_roll_back: bool = True

    def logits(self, tokens: Sequence[int], *, last: int) -> Logits:
        if len(tokens) > self.context_size:
            raise EvaluationError("the context is full")
        assert 1 <= last <= len(tokens)
        prefixes = range(len(tokens) - last + 1, len(tokens) + 1)
        return np.stack([self.rows(tuple(tokens[:size])) for size in prefixes])

    def cached(self, tokens: Sequence[int]) -> int:
        return 0

    def forget(self) -> None:
        pass


def random_model(seed: int, vocab: int, *, order: int = 3, context_size: int = 4096) -> TableModel:
    return TableModel(random_rows(seed, vocab, order=order), vocab, context_size)


@dataclass
class CountingModel:
    """Another model, and a list of what it was asked: (number of tokens, rows)."""

    model: LanguageModel
    calls: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.vocab_size = self.model.vocab_size
        self.context_size = self.model.context_size
        self.can_roll_back = self.model.can_roll_back

    def logits(self, tokens: Sequence[int], *, last: int) -> Logits:
        self.calls.append((len(tokens), last))
        return self.model.logits(tokens, last=last)

    def cached(self, tokens: Sequence[int]) -> int:
        return self.model.cached(tokens)

    def forget(self) -> None:
        self.model.forget()


@dataclass
class PointDrafter:
    """Guesses a model's favourite, as a point mass."""

    model: LanguageModel
    source: str = "point"

    def draft(self, tokens: Sequence[int], chance: Chance) -> Iterator[Guess]:
        history = list(tokens)
        while len(history) <= self.model.context_size:
            history.append(int(self.model.logits(history, last=1)[0].argmax()))
            yield Guess(history[-1])


@dataclass
class FixedGuess:
    """Always the same guess, however unlikely."""

    token: int
    source: str = "fixed"

    def draft(self, tokens: Sequence[int], chance: Chance) -> Iterator[Guess]:
        while True:
            yield Guess(self.token)


@dataclass
class Policy:
    """Drafts in every round, the first one too, and may stop after a guess that it keeps."""

    drafter: Drafter
    length: int
    stop: Callable[[Guess], bool] = lambda guess: False
    decision: str = ""

    def propose(self, tokens: Sequence[int], limit: int, chance: Chance) -> Proposal:
        guesses: list[Guess] = []
        for guess in islice(self.drafter.draft(tokens, chance), min(self.length, limit)):
            guesses.append(guess)
            if self.stop(guess):
                break
        return Proposal(tuple(guesses), self.drafter.source)

    def learn(self, round: Round) -> None:
        pass
