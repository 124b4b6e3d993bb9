"""Every outcome of the shipped decode loop with its exact probability: no sampling, no copy of it.

A run is repeated once per outcome. Each question that the loop asks its `Chance` is a fork: a
script says which way to go, and where it ends the first way is taken and the others are noted.

Behind a question stands a uniform number, known only by its key. It starts as the interval [0, 1)
and every question cuts it: two questions with one key are dependent in just the way in which two
uses of one random number are. Shipped keys are all different, so each number is asked once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias, TypeVar

import numpy as np

from specdec_cli.core.chance import ACCEPT, CHOOSE, DRAW, Chance
from specdec_cli.core.distribution import Distribution, distribution
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.rounds import Round
from specdec_cli.core.verification import Rule
from specdec_cli.engine.decoding import DecodeOptions, decode
from specdec_cli.engine.drafting import Drafting
from specdec_cli.engine.language_model import LanguageModel
from specdec_cli.engine.table_model import PLAIN

PROMPT = (0,)

T = TypeVar("T")
Chances: TypeAlias = Callable[[int, int], Chance]
Keys: TypeAlias = Callable[[int, int, int], Hashable]
Law: TypeAlias = dict[tuple[int, ...], float]
"""Probability of each sequence of tokens."""


def fresh(purpose: int, start: int, position: int) -> Hashable:
    """How `Independent` keys its numbers."""
    return purpose, start, position


class Path:
    """One run of the code under test."""

    def __init__(self, script: Sequence[int]) -> None:
        self.probability = 1.0
        self.others: list[tuple[int, ...]] = []
        self._script = script
        self._taken: list[int] = []
        self._numbers: dict[Hashable, tuple[float, float]] = {}

    def fork(self, key: Hashable, edges: Sequence[float]) -> int:
        """Which of the intervals between `edges` the number of this key lies in."""
        low, high = self._numbers.get(key, (0.0, 1.0))
        cut = [(i, max(low, a), min(high, b)) for i, (a, b) in enumerate(pairwise(edges))]
        ways = [way for way in cut if way[2] > way[1]]
        depth = len(self._taken)
        if depth < len(self._script):
            way = self._script[depth]
        else:
            way = 0
            self.others += [(*self._taken, other) for other in range(1, len(ways))]
        self._taken.append(way)
        outcome, *interval = ways[way]
        self._numbers[key] = (interval[0], interval[1])
        self.probability *= (interval[1] - interval[0]) / (high - low)
        return outcome


@dataclass(frozen=True)
class Enumerated:
    """The `Chance` of one round of one path."""

    path: Path
    start: int
    keys: Keys

    def draw(self, position: int, draft: Distribution) -> int:
        return self._pick(DRAW, position, draft)

    def accept(self, position: int, probability: float) -> bool:
        edges = (0.0, probability, 1.0)
        return self.path.fork(self.keys(ACCEPT, self.start, position), edges) == 0

    def choose(self, position: int, target: Distribution) -> int:
        return self._pick(CHOOSE, position, target)

    def _pick(self, purpose: int, position: int, law: Distribution) -> int:
        edges = (0.0, *np.cumsum(law.probs)[:-1].tolist(), 1.0)
        return int(law.ids[self.path.fork(self.keys(purpose, self.start, position), edges)])


def outcomes(run: Callable[[Chances], T], keys: Keys = fresh) -> Iterator[tuple[T, float]]:
    """What `run` returns, once per path, with the probability of the path."""
    scripts: list[tuple[int, ...]] = [()]
    while scripts:
        path = Path(scripts.pop())

        def chances(_seed: int, start: int, path: Path = path) -> Chance:
            return Enumerated(path, start, keys)

        result = run(chances)
        scripts += path.others
        yield result, path.probability


@dataclass(frozen=True)
class Setting:
    """What to decode with. The factories are called for every run, so nothing leaks across."""

    target: Callable[[], LanguageModel]
    drafting: Callable[[], Drafting]
    sampling: SamplingOptions = PLAIN
    ends: frozenset[int] = frozenset()

    def rounds(
        self, rule: Rule, chances: Chances, prompt: tuple[int, ...] = PROMPT
    ) -> Iterator[Round]:
        """The shipped loop, asking `chances` instead of random numbers."""
        options = DecodeOptions(self.sampling, seed=0, max_tokens=None, ends=self.ends)
        rule = replace(rule, chance=chances)
        return decode(self.target(), self.drafting(), rule, prompt, options)


def plain_law(setting: Setting, length: int) -> Law:
    """The autoregressive law of the first `length` tokens, one row after another."""
    model, law = setting.target(), Law()

    def extend(answer: tuple[int, ...], probability: float) -> None:
        if len(answer) == length or setting.ends.intersection(answer[-1:]):
            law[answer] = probability
            return
        tokens = [*PROMPT, *answer]
        following = distribution(model.logits(tokens, last=1)[0], setting.sampling, tokens)
        for token, share in zip(following.ids.tolist(), following.probs.tolist(), strict=True):
            extend((*answer, token), probability * share)

    extend((), 1.0)
    return law


def answer_law(setting: Setting, rule: Rule, length: int, keys: Keys = fresh) -> Law:
    """The law of the first `length` tokens of whole answers, each from one decode loop."""

    def run(chances: Chances) -> tuple[int, ...]:
        answer: tuple[int, ...] = ()
        for round in setting.rounds(rule, chances):
            answer += round.emitted
            if len(answer) >= length:
                break
        return answer[:length]

    return _sum(outcomes(run, keys))


def law_by_rounds(setting: Setting, rule: Rule, length: int) -> Law:
    """The same, a round at a time: faster, for models and policies that carry nothing over.

    Answers that agree so far are merged before they go into their next round.
    """
    law, open_answers = Law(), Law({(): 1.0})
    while open_answers:
        prefix = min(open_answers, key=len)
        weight = open_answers.pop(prefix)

        def run(chances: Chances, prefix: tuple[int, ...] = prefix) -> tuple[bool, tuple[int, ...]]:
            round = next(setting.rounds(rule, chances, PROMPT + prefix))
            return round.finish is not None, (prefix + round.emitted)[:length]

        for (finished, answer), probability in outcomes(run):
            goes_on = not finished and len(answer) < length
            where = open_answers if goes_on else law
            where[answer] = where.get(answer, 0.0) + weight * probability
    return law


def expected_accepted(setting: Setting, rule: Rule) -> float:
    """Mean number of accepted guesses in the first round."""
    paths = outcomes(lambda chances: next(setting.rounds(rule, chances)).accepted)
    return sum(accepted * probability for accepted, probability in paths)


def distance(left: Law, right: Law) -> float:
    """Total variation."""
    return sum(abs(left.get(x, 0.0) - right.get(x, 0.0)) for x in left.keys() | right.keys()) / 2


def _sum(paths: Iterator[tuple[tuple[int, ...], float]]) -> Law:
    law: defaultdict[tuple[int, ...], float] = defaultdict(float)
    for answer, probability in paths:
        law[answer] += probability
    return dict(law)
