"""How often a source's guesses stand, learned from what was verified, by how sure it was."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

EDGES = (0.35, 0.52, 0.64, 0.7, 0.8, 0.9, 0.95, 0.98, 0.995)  # of confidence, between buckets
START = len(EDGES) + 1  # the "bucket" before a round's first guess
WINDOW = 40.0  # guesses that a bucket remembers: text changes its kind within an answer
PRIOR = 8.0  # guesses that what was believed before is worth
DRIFT = 0.5  # of what one text taught, how much is believed of the next: it is another text


@dataclass(slots=True)
class Rate:
    """A share that forgets: hits among the last `WINDOW` guesses or so."""

    prior: float
    hits: float = 0.0
    seen: float = 0.0

    @property
    def value(self) -> float:
        return (self.hits + PRIOR * self.prior) / (self.seen + PRIOR)

    @property
    def afterwards(self) -> float:
        """What is to be believed when another text begins."""
        return self.prior + DRIFT * (self.value - self.prior)

    def next_text(self) -> None:
        self.prior, self.hits, self.seen = self.afterwards, 0.0, 0.0

    def saw(self, hit: float) -> None:
        kept = 1 - 1 / WINDOW
        self.hits = self.hits * kept + hit
        self.seen = self.seen * kept + 1


@dataclass(slots=True)
class Acceptance:
    """Of one source.

    Attributes:
        savings: plain passes' time put by for looking at it where it does not seem to pay.
        patience: how much dearer that has become by looks that led to nothing.
        stands: by confidence bucket: how often such a guess stands if those before it do.
        follows: by the bucket of the guess before it, or `START`: how often the next one stands,
            which is all there is to know before it is drawn.
    """

    stands: list[Rate] = field(default_factory=list)
    follows: list[Rate] = field(default_factory=list)
    savings: float = 0.0
    patience: float = 1.0

    @staticmethod
    def believing(priors: Sequence[float], first: float) -> Acceptance:
        """Priors by bucket; `first` is believed of any guess before it is drawn."""
        return Acceptance(
            [Rate(prior) for prior in priors], [Rate(first) for _ in range(START + 1)]
        )

    def of(self, confidence: float) -> float:
        return self.stands[bucket(confidence)].value

    def after(self, confidence: float | None) -> float:
        """Of a guess not drawn yet; None before the first."""
        return self.follows[START if confidence is None else bucket(confidence)].value

    @property
    def later(self) -> float:
        """Of any guess but the first, whatever came before it: the mean, by what was seen."""
        rates = self.follows[:START]
        weights = [rate.seen + PRIOR / len(rates) for rate in rates]
        total = sum(rate.value * weight for rate, weight in zip(rates, weights, strict=True))
        return total / sum(weights)

    def saw(self, confidences: Sequence[float], hits: Sequence[float]) -> None:
        """Learn from one proposal.

        Args:
            confidences: of its guesses.
            hits: for every guess that was reached (one was unless all before it stood), 1 or 0,
                or the probability with which it was to stand, which says more than the draw.
        """
        before = START
        for confidence, hit in zip(confidences, hits, strict=False):
            self.follows[before].saw(hit)
            before = bucket(confidence)
            self.stands[before].saw(hit)

    def saw_each(self, confidences: Sequence[float], hits: Sequence[float]) -> None:
        """Learn from a guess at every place of a text: a round could have begun at any of them."""
        for place, (confidence, hit) in enumerate(zip(confidences, hits, strict=True)):
            self.follows[START].saw(hit)
            if place and hits[place - 1] > 0.5:
                self.follows[bucket(confidences[place - 1])].saw(hit)
            self.stands[bucket(confidence)].saw(hit)


def bucket(confidence: float) -> int:
    return bisect_right(EDGES, confidence)
