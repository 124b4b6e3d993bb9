"""The policy `auto`: every round, the source and the number of guesses that promise most."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from time import perf_counter

from specdec_cli.core.chance import Chance
from specdec_cli.core.distribution import Distribution
from specdec_cli.core.pass_seconds import PassSeconds
from specdec_cli.core.policy import Worth, best_known, best_unknown, one_more, plain
from specdec_cli.core.rounds import NOTHING, Guess, Proposal, Round
from specdec_cli.core.verification import TargetRows, overlap
from specdec_cli.engine.sources import MEMORY, Offer, Source, could_pay
from specdec_cli.errors import EvaluationError

MARGIN = 0.1  # tokens a round that drafting must promise above plain: estimates err
EXPECTED = 32  # tokens that an answer is taken to have left, besides as many as it has so far
STAKE = 0.03  # share of an answer that free guesses may cost if all of them are wrong
LOOK = 16  # tokens over which a model is asked what it would have guessed
SAVED = 0.01  # share of the time that is put by for that,
EARNED = 0.1  # and of the time that drafting has won
AT_ONCE = 0.05  # share of an answer's time, as far as it can be seen, that a look may take
MOST_PATIENCE = 16.0


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
    _won: float = 0.0  # plain passes' time
    _laws: deque[Distribution] = field(default_factory=lambda: deque(maxlen=LOOK))

    def propose(self, tokens: Sequence[int], limit: int, chance: Chance) -> Proposal:
        if not self._emitted or limit < 1:  # the prompt is not read yet, or there is no room
            return NOTHING
        most = min(self.most, limit)
        rate = self._rate()
        self._look_back(tokens, limit, chance, rate)
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
            guesses = list(source.ready[: offer.worth.guesses])
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
            won = len(round.emitted) - round.seconds.total / self.verify(1)
            self._won += won
            for source in self.sources:
                source.acceptance.savings += SAVED * len(round.emitted) + EARNED * max(0.0, won)
        if self.overlaps:
            self._laws.extend(target(place) for place in range(len(round.emitted)))
        self._emitted += len(round.emitted)
        if not round.proposal:
            self._used["plain"] += 1
        for source in self.sources:
            source.unasked += len(round.emitted)
            if source.drafter.source == round.proposal.source:
                source.unasked = 0
                guesses = round.proposal.guesses
                if source.seconds is not None:
                    spent = len(guesses) * source.seconds(1) + self.verify(len(guesses) + 1)
                    source.gave(len(round.emitted), spent)
            else:  # one that was not asked learns too, if its guesses are known
                guesses = source.ready
            self._saw(source, guesses, round, target)
            source.ready = ()

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
            source.ready = tuple(islice(source.drafter.draft(tokens, chance), most))
            bearable = source.ready[: self._bearable(limit, most)]
            chances = [known.of(guess.confidence) for guess in bearable]
            return Offer(source, best_known(chances, self.verify, rate))
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
        return Offer(source, replace(worth, seconds=worth.seconds + max(0.0, share)))

    def _bearable(self, limit: int, most: int) -> int:
        """How many guesses may be wrong without making the answer clearly slower than plain.

        A text may repeat itself or not, and nothing is known of that when it begins.
        """
        seen = self._emitted + min(limit, EXPECTED + self._emitted)
        left = STAKE * seen + self._won
        count = 0
        while count < most and self.verify(count + 2) / self.verify(1) - 1 <= left:
            count += 1
        return count

    def _choose(self, offers: Sequence[Offer], rate: float) -> Offer | None:
        """The best; plain unless it promises more."""
        least = plain(self.verify).over(rate) + MARGIN
        paying = [offer for offer in offers if offer.worth.over(rate) > least]
        best = max(paying, key=lambda offer: offer.worth.over(rate), default=None)
        if best is not None:
            best.source.acceptance.patience = 1.0
        return best

    def _look_back(self, tokens: Sequence[int], limit: int, chance: Chance, rate: float) -> None:
        """Let a model that seemed not to pay read on, and see what it would have guessed.

        Reading tells of many guesses for the price of one pass of the draft, and of none of the
        target. It is paid from savings, so exploring can never cost more than a share of plain
        decoding (as in conservative bandits, Wu et al. 2016, arXiv 1602.04282).
        """
        seen = self._emitted + min(limit, EXPECTED + self._emitted)
        for source in self.sources:
            if source.seconds is None or source.in_hindsight is None or source.failure:
                continue
            known, rows = source.acceptance, max(LOOK, source.behind(tokens) - 1)
            price = source.seconds(rows) / self.verify(1)
            affordable = price <= AT_ONCE * seen and price * known.patience <= known.savings
            silent = source.unasked >= LOOK
            if not (silent and affordable and could_pay(source, self.most, self.verify, rate)):
                continue
            known.savings -= price * known.patience
            started = self.clock()
            try:
                guesses = source.in_hindsight(tokens, LOOK, chance)
            except EvaluationError as error:
                source.failure = f"drafting stopped: {error.message}"
                continue
            if not guesses:  # the text is longer than its context
                continue
            source.seconds.saw(rows, self.clock() - started)
            source.unasked = 0
            laws = self._laws if self.overlaps else [None] * LOOK
            hits = list(map(self._hit, guesses, tokens[-LOOK:], laws))
            worse = sum(hits) < LOOK * known.after(None)
            known.patience = min(MOST_PATIENCE, 2 * known.patience) if worse else 1.0
            known.saw_each([guess.confidence for guess in guesses], hits)

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

    def _saw(
        self, source: Source, guesses: Sequence[Guess], round: Round, target: TargetRows
    ) -> None:
        """Learn from the guesses that were reached: one is unless all before it stood."""
        hits: list[float] = []
        for place, (guess, token) in enumerate(zip(guesses, round.emitted, strict=False)):
            hits.append(self._hit(guess, token, target(place) if self.overlaps else None))
            if guess.token != token:
                break
        source.acceptance.saw([guess.confidence for guess in guesses], hits)

    @staticmethod
    def _hit(guess: Guess, token: int, law: Distribution | None) -> float:
        """Did it stand, or where chance decides: how likely was it to?"""
        return float(guess.token == token) if law is None else overlap(law, guess.law)
