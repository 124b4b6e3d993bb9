"""The policy `auto`: every round, the source and the number of guesses that promise most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from time import perf_counter

from specdec_cli.core.chance import Chance
from specdec_cli.core.pass_seconds import PassSeconds
from specdec_cli.core.policy import Worth, best_known, best_unknown, one_more, plain
from specdec_cli.core.rounds import NOTHING, Guess, Proposal, Round
from specdec_cli.core.verification import TargetRows, overlap
from specdec_cli.engine.sources import MEMORY, Offer, Source
from specdec_cli.errors import EvaluationError

MARGIN = 0.1  # tokens a round that drafting must promise above plain: estimates err
EXPECTED = 32  # tokens that an answer is taken to have left, besides as many as it has so far
PROBING = 0.005  # share of the time that may go into trying what does not seem to pay
LEAST_PROMISE = 1.05  # what could not even then be this much faster than plain is not tried:
SURE = 0.95  # if its guesses stood so often
MOST_PATIENCE = 32.0


@dataclass(slots=True)
class Adaptive:
    """Decides by expected tokens per second; learns costs and acceptance from every round.

    Guesses that were drawn are always proposed, and whether to draw another depends on those
    before it alone, so every rule stays exact; with `coupled` the text cannot depend on it.

    Args:
        verify: seconds of the target's passes.
        most: guesses in a round at most.
        overlaps: guesses are verified by `rejection` or `block`, so the chance that one had is
            the overlap of the two distributions, which says more than whether it stood.
        note: what else a person should know about the decision.
    """

    sources: Sequence[Source]
    verify: PassSeconds
    most: int
    overlaps: bool = False
    note: str = ""
    clock: Callable[[], float] = perf_counter
    _used: Counter[str] = field(default_factory=Counter)  # rounds by source
    _guessed: int = 0
    _emitted: int = 0
    _tokens: float = 0.0  # of the long-run rate
    _seconds: float = 0.0

    def propose(self, tokens: Sequence[int], limit: int, chance: Chance) -> Proposal:
        if not self._emitted or limit < 1:  # the prompt is not read yet, or there is no room
            return NOTHING
        most = min(self.most, limit)
        rate = self._rate()
        offers = [
            self._offer(source, tokens, limit, chance, rate)
            for source in self.sources
            if not source.failure
        ]
        # A rate that nothing reaches now would make idling look best.
        best = max((offer.worth.tokens / offer.worth.seconds for offer in offers), default=0.0)
        rate = max(1 / self.verify(1), min(rate, best))
        offer = self._choose(offers, rate)
        if offer is None:
            return NOTHING
        source = offer.source
        if source.seconds is None:
            guesses = offer.ready[: max(1, offer.worth.guesses)]
        else:
            guesses = self._draw(source, source.seconds, tokens, most, chance, rate)
        self._used[source.drafter.source] += 1
        self._guessed += len(guesses)
        return Proposal(tuple(guesses), source.drafter.source) if guesses else NOTHING

    def learn(self, round: Round, target: TargetRows) -> None:
        if self._emitted:  # the first pass is the prompt's, and says nothing about rounds
            self.verify.saw(len(round.proposal) + 1, round.seconds.target)
            self._tokens = MEMORY * self._tokens + len(round.emitted)
            self._seconds = MEMORY * self._seconds + round.seconds.total
        self._emitted += len(round.emitted)
        if not round.proposal:
            self._used["plain"] += 1
        for source in self.sources:
            source.savings += PROBING * round.seconds.total
            if source.drafter.source == round.proposal.source:
                source.acceptance.saw(
                    [guess.confidence for guess in round.proposal.guesses],
                    self._hits(round, target),
                )
                if source.seconds is not None:
                    drawn = len(round.proposal)
                    spent = drawn * source.seconds(1) + self.verify(drawn + 1)
                    source.gave(len(round.emitted), spent)

    @property
    def plain_seconds(self) -> float | None:
        """What a plain pass would take now."""
        return self.verify(1)

    @property
    def decision(self) -> str:
        failures = [source.failure for source in self.sources if source.failure]
        if failures:
            return failures[0]
        words = self._words()
        return f"{words}; {self.note}" if self.note else words

    def _words(self) -> str:
        drafted = {name: count for name, count in self._used.items() if name != "plain"}
        if not drafted:
            return "plain: no guesses promised to pay"
        words = [f"{count} rounds from {name}" for name, count in drafted.items()]
        words.append(f"{self._used['plain']} plain")
        return f"{', '.join(words)}; {self._guessed / sum(drafted.values()):.1f} guesses a draft"

    def _rate(self) -> float:
        """Tokens per second in the long run, at least those of plain decoding."""
        slowest = 1 / self.verify(1)
        return max(slowest, self._tokens / self._seconds) if self._seconds else slowest

    def _offer(
        self, source: Source, tokens: Sequence[int], limit: int, chance: Chance, rate: float
    ) -> Offer:
        known, most = source.acceptance, min(self.most, limit)
        if source.seconds is None:
            ready = list(islice(source.drafter.draft(tokens, chance), most))
            chances = [known.of(guess.confidence) for guess in ready]
            return Offer(source, best_known(chances, self.verify, rate), ready)
        missed = max(1, source.behind(tokens))
        one = source.seconds(1)
        first, later = known.after(None), known.later
        worth = best_unknown(first, later, most, source.seconds, one, self.verify, rate)
        if source.proven:
            # What it really gave, as it stops when it is unsure, which a mean cannot know.
            record = Worth(worth.guesses, source.tokens, source.spent)
            worth = max(worth, record, key=lambda worth: worth.over(rate))
        # What was missed is read once, and later rounds profit from it: each bears its share.
        left = min(limit, EXPECTED + self._emitted)
        share = (source.seconds(missed) - one) / max(1.0, left / worth.tokens)
        return Offer(source, replace(worth, seconds=worth.seconds + max(0.0, share)), [], missed)

    def _choose(self, offers: Sequence[Offer], rate: float) -> Offer | None:
        """The best; plain unless it promises more; now and then a trial of what does not."""
        least = plain(self.verify).over(rate) + MARGIN
        paying = [offer for offer in offers if offer.worth.over(rate) > least]
        # Models are used from the cheapest up: what one is worth shows when it is used.
        untried = [offer for offer in paying if not offer.source.proven]
        first = min(untried, key=lambda offer: offer.source.price, default=None)
        due = [offer for offer in paying if offer.source.proven or offer is first]
        if due:
            best = max(due, key=lambda offer: offer.worth.over(rate))
            best.source.patience = 1.0
            return best
        return next((offer for offer in offers if self._try(offer)), None)

    def _try(self, offer: Offer) -> bool:
        source = offer.source
        if source.seconds is None:
            if not offer.ready:
                return False
            price = self.verify(2) - self.verify(1)
        else:
            draft = source.seconds
            dream = best_unknown(SURE, SURE, self.most, draft, draft(2), self.verify, self._rate())
            if dream.tokens / dream.seconds < LEAST_PROMISE / self.verify(1):
                return False
            price = draft(max(1, offer.behind)) + self.verify(2) - self.verify(1)
        if source.savings < price * source.patience:
            return False
        source.savings = 0.0
        source.patience = min(MOST_PATIENCE, source.patience * 2)
        return True

    def _draw(
        self, source: Source, seconds: PassSeconds, tokens: Sequence[int], most: int,
        chance: Chance, rate: float,
    ) -> list[Guess]:  # fmt: skip
        """Pull guesses while one more promises to pay."""
        guesses: list[Guess] = []
        stands = 1.0
        rows, started = max(1, source.behind(tokens)), self.clock()
        try:
            for guess in islice(source.drafter.draft(tokens, chance), most):
                now = self.clock()
                seconds.saw(rows, now - started)
                guesses.append(guess)
                stands *= source.acceptance.of(guess.confidence)
                later = source.acceptance.after(guess.confidence)
                if not one_more(stands, later, len(guesses), most, seconds, self.verify, rate):
                    break
                rows, started = 1, self.clock()
        except EvaluationError as error:  # what was drawn is kept, and the answer goes on
            source.failure = f"drafting stopped: {error.message}"
        return guesses

    def _hits(self, round: Round, target: TargetRows) -> list[float]:
        """For each guess that was reached: did it stand, or how likely was it to."""
        guesses = round.proposal.guesses
        reached = round.accepted + (round.accepted < len(guesses) and round.finish is None)
        if self.overlaps:
            return [overlap(target(i), guesses[i].law) for i in range(reached)]
        return [float(i < round.accepted) for i in range(reached)]
