"""Sources of guesses. A drafter is a lazy stream: whoever pulls decides how many are worth it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np

from specdec_cli.core.chance import Chance
from specdec_cli.core.distribution import Distribution, Ids, Row, distribution
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.rounds import Guess
from specdec_cli.core.suffix import SuffixAutomaton, Trail
from specdec_cli.engine.language_model import LanguageModel
from specdec_cli.engine.retokenization import Retokenizer
from specdec_cli.engine.vocabulary import Intersection

BETWEEN = -1  # stands between texts that have nothing to do with each other


class Drafter(Protocol):
    source: str  # the name under which its guesses are counted and coloured
    memoryless: bool  # does a guess depend on the tokens before it alone, guessed ones or not?

    def draft(self, tokens: Sequence[int], chance: Chance) -> Iterator[Guess]:
        """Guesses for what follows `tokens`, one after another, until it has none.

        A guess that was drawn must be proposed: dropping one because of its value changes the
        distribution of the answer. Stopping after it is fine.
        """


class ModelDrafter:
    """Guesses of a smaller model with the target's vocabulary, drawn with the request's filters.

    The filters are mirrored because a draft flatter than the filtered target proposes tokens that
    the target can never accept.

    Args:
        never: ids that do not mean the same to both, and are not drafted.
    """

    memoryless = True

    def __init__(
        self,
        draft: LanguageModel,
        sampling: SamplingOptions,
        *,
        target_vocab: int,
        ends: frozenset[int],
        never: Ids | None = None,
        source: str = "model",
    ) -> None:
        self.source = source
        self._draft = draft
        self._sampling = sampling
        self._width = min(target_vocab, draft.vocab_size)  # padding ids are never drafted
        self._ends = ends
        self._never = never if never is not None and len(never) else None

    def draft(self, tokens: Sequence[int], chance: Chance) -> Iterator[Guess]:
        return _guesses(self._row, tokens, self._sampling, self._ends, chance)

    def behind(self, tokens: Sequence[int]) -> int:
        """How many of `tokens` the draft has not read."""
        return len(tokens) - self._draft.cached(tokens)

    def in_hindsight(self, tokens: Sequence[int], count: int, chance: Chance) -> list[Guess]:
        """What it would have guessed in place of each of the last `count` tokens.

        One pass tells all of them, and it is the pass that reads what the draft has missed.
        """
        history = list(tokens[:-1])
        if len(history) > self._draft.context_size:
            return []
        rows = self._draft.logits(history, last=count)
        return [
            _guess(self._usable(row), tokens[:place], self._sampling, chance)
            for place, row in enumerate(rows, len(tokens) - count)
        ]

    def _row(self, history: list[int]) -> Row | None:
        if len(history) > self._draft.context_size:
            return None
        return self._usable(self._draft.logits(history, last=1)[0])

    def _usable(self, row: Row) -> Row:
        row = row[: self._width]
        if self._never is not None:
            row = row.copy()
            row[self._never] = -np.inf
        return row


class CrossVocabularyDrafter:
    """Guesses of a model with other tokens: those it shares with the target, renormalised.

    Any distribution will do as a draft's, so leaving out what the target cannot read costs
    acceptance and nothing else. Timor et al., ICML 2025, arXiv 2502.05202.
    """

    memoryless = False  # guesses are appended to the translated text, not translated with it

    def __init__(
        self,
        draft: LanguageModel,
        sampling: SamplingOptions,
        *,
        target_vocab: int,
        ends: frozenset[int],
        shared: Intersection,
        retokenizer: Retokenizer,
        source: str = "model",
    ) -> None:
        self.source = source
        self._draft = draft
        self._sampling = sampling
        self._target_vocab = target_vocab
        self._ends = ends
        self._shared = shared
        self._retokenizer = retokenizer
        self._draft_id = dict(
            zip(shared.target_ids.tolist(), shared.draft_ids.tolist(), strict=True)
        )

    def draft(self, tokens: Sequence[int], chance: Chance) -> Iterator[Guess]:
        context = self._retokenizer.translate(tokens)

        def row(history: list[int]) -> Row | None:
            guessed = [self._draft_id[token] for token in history[len(tokens) :]]
            if not context or len(context) + len(guessed) > self._draft.context_size:
                return None
            row = np.full(self._target_vocab, -np.inf, dtype=np.float32)
            logits = self._draft.logits([*context, *guessed], last=1)
            row[self._shared.target_ids] = logits[0, self._shared.draft_ids]
            return row

        return _guesses(row, tokens, self._sampling, self._ends, chance)

    def behind(self, tokens: Sequence[int]) -> int:
        """How many of `tokens` the draft has not read, in its own tokens."""
        context = self._retokenizer.translate(tokens)
        return len(context) - self._draft.cached(context)


def _guesses(
    row_after: Callable[[list[int]], Row | None],
    tokens: Sequence[int],
    sampling: SamplingOptions,
    ends: frozenset[int],
    chance: Chance,
) -> Iterator[Guess]:
    """Draw one guess after another from a draft's rows, in target ids, until it has no row."""
    history = list(tokens)
    while (row := row_after(history)) is not None:
        guess = _guess(row, history, sampling, chance)
        yield guess
        if guess.token in ends:
            return
        history.append(guess.token)


def _guess(row: Row, history: Sequence[int], sampling: SamplingOptions, chance: Chance) -> Guess:
    law = distribution(row, sampling, history)
    token = chance.draw(len(history), law)
    return Guess(token, law, confidence(row, law, token))


def confidence(row: Row, law: Distribution, token: int) -> float:
    """How sure a model is of a token it has drawn: its probability, as far as that is known.

    Greedily the law is a point and says nothing; there it is the share of the best two logits,
    which two passes over the row give, where a softmax would take a hundred.
    """
    if len(law.ids) > 1:
        return law.prob(token)
    best = float(row[token])
    row[token] = -np.inf  # for a moment: a copy would cost more than the search
    second = float(row.max())
    row[token] = best
    return 1 / (1 + math.exp(min(700.0, second - best)))


class SuffixDrafter:
    """Guesses that the text goes on as it did after the longest earlier match of its end.

    Its confidence grows with the length of the match, which every guess that stands makes longer.

    Args:
        known: texts that the answer may repeat, although they are not in the prompt, with BETWEEN
            after each.
    """

    source = "suffix"
    memoryless = False  # it follows the match that the text had before the first guess

    def __init__(
        self, *, ends: frozenset[int], min_match: int = 2, known: SuffixAutomaton | None = None
    ) -> None:
        self._ends = ends
        self._min_match = min_match  # one common token says too little
        self._known = known or SuffixAutomaton()
        self._start()

    def draft(self, tokens: Sequence[int], chance: Chance) -> Iterator[Guess]:
        self._follow(tokens)
        own, known = self._own, self._trail
        longest = known if known.match > own.match else own
        if longest.match < self._min_match:
            return
        for length, token in enumerate(longest.continuation(), longest.match):
            if token == BETWEEN:
                return
            yield Guess(token, confidence=length / (length + 1))
            if token in self._ends:
                return

    def _start(self) -> None:
        self._own, self._trail = SuffixAutomaton(), Trail(self._known)

    def _follow(self, tokens: Sequence[int]) -> None:
        """Read what is new; another conversation is read from its beginning."""
        done = len(self._own.tokens)
        if list(tokens[:done]) != self._own.tokens:
            self._start()
            done = 0
        self._own.extend(tokens[done:])
        self._trail.extend(tokens[done:])
