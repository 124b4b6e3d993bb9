"""Language models small enough to know by heart, and drafters and policies to go with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from specdec_cli.core.chance import Chance
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.rounds import Guess, Proposal, Round
from specdec_cli.core.verification import TargetRows
from specdec_cli.engine.drafters import Drafter
from specdec_cli.engine.language_model import LanguageModel, Logits
from specdec_cli.engine.table_model import PLAIN, Rows, TableModel, random_model, random_rows

__all__ = [  # the table models of the package's own self-test are used here as well
    "PLAIN",
    "Rows",
    "TableModel",
    "random_model",
    "random_rows",
]

GREEDY = SamplingOptions(temp=0.0)


def fixed_rows(probs: Sequence[float]) -> Rows:
    """The same law after whatever tokens."""
    row = np.log(np.asarray(probs)).astype(np.float32)
    return lambda tokens: row


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


class FailingModel:
    """Another model that breaks at an evaluation, after a number of good ones."""

    def __init__(self, model: TableModel, after: int, error: Exception) -> None:
        self.vocab_size = model.vocab_size
        self.context_size = model.context_size
        self.can_roll_back = True
        self._model, self._left, self._error = model, after, error

    def logits(self, tokens: Sequence[int], *, last: int) -> Logits:
        if self._left == 0:
            raise self._error
        self._left -= 1
        return self._model.logits(tokens, last=last)

    def cached(self, tokens: Sequence[int]) -> int:
        return 0

    def forget(self) -> None:
        pass


@dataclass
class PointDrafter:
    """Guesses a model's favourite, as a point mass."""

    model: LanguageModel
    source: str = "point"
    memoryless: bool = True

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
    memoryless: bool = True

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
    plain_seconds: float | None = None

    def propose(self, tokens: Sequence[int], limit: int, chance: Chance) -> Proposal:
        guesses: list[Guess] = []
        for guess in islice(self.drafter.draft(tokens, chance), min(self.length, limit)):
            guesses.append(guess)
            if self.stop(guess):
                break
        return Proposal(tuple(guesses), self.drafter.source)

    def learn(self, round: Round, target: TargetRows) -> None:
        pass
