"""Sources of guesses. A drafter is a lazy stream: whoever pulls decides how many are worth it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from specdec_cli.core.chance import Chance
from specdec_cli.core.distribution import distribution
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.rounds import Guess
from specdec_cli.engine.language_model import LanguageModel


class Drafter(Protocol):
    source: str  # the name under which its guesses are counted and coloured

    def draft(self, tokens: Sequence[int], chance: Chance) -> Iterator[Guess]:
        """Guesses for what follows `tokens`, one after another, until it has none.

        A guess that was drawn must be proposed: dropping one because of its value changes the
        distribution of the answer. Stopping after it is fine.
        """


class ModelDrafter:
    """Guesses of a smaller model with the target's vocabulary, drawn with the request's filters.

    The filters are mirrored because a draft flatter than the filtered target proposes tokens that
    the target can never accept.
    """

    source = "model"

    def __init__(
        self,
        draft: LanguageModel,
        sampling: SamplingOptions,
        *,
        target_vocab: int,
        ends: frozenset[int],
    ) -> None:
        self._draft = draft
        self._sampling = sampling
        self._width = min(target_vocab, draft.vocab_size)  # padding ids are never drafted
        self._ends = ends

    def draft(self, tokens: Sequence[int], chance: Chance) -> Iterator[Guess]:
        history = list(tokens)
        while len(history) <= self._draft.context_size:
            row = self._draft.logits(history, last=1)[0, : self._width]
            law = distribution(row, self._sampling, history)
            token = chance.draw(len(history), law)
            yield Guess(token, law)
            if token in self._ends:
                return
            history.append(token)
