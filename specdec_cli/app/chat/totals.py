"""`/stats`: the answers of a session, summed and compared with plain decoding."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from time import perf_counter

from specdec_cli.app.generate import Answer
from specdec_cli.core.statistics import ratio
from specdec_cli.engine.language_model import Interrupted
from specdec_cli.engine.llama.context import LlamaContext

PASSES = 3  # evaluated to learn what a plain pass takes
GROWTH = 1.5  # it takes longer in a longer text: measured again when it has grown so much


@dataclass(slots=True)
class Totals:
    """Sums over answers. `saved_seconds` counts the answers for which plain speed was measured."""

    answers: int = 0
    tokens: int = 0
    passes: int = 0
    drafted: int = 0
    accepted: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    seconds: float = 0.0  # after the prompts' first logits
    timed_seconds: float = 0.0  # the same, of the answers with a measured plain pass
    plain_seconds: float = 0.0  # what those would have taken without speculation

    def add(self, answer: Answer, plain_pass: float | None) -> None:
        """`plain_pass`: measured seconds of a target pass without guesses; None: not measured."""
        statistics = answer.statistics
        self.answers += 1
        self.tokens += statistics.tokens
        self.passes += statistics.passes
        self.drafted += statistics.drafted
        self.accepted += statistics.accepted
        self.prompt_tokens += answer.prompt_tokens
        self.cached_tokens += answer.cached_tokens
        self.seconds += statistics.predicted_seconds
        if plain_pass is not None:
            self.timed_seconds += statistics.predicted_seconds
            # The first token came out of the prompt's own pass.
            self.plain_seconds += plain_pass * max(0, statistics.tokens - 1)

    @property
    def acceptance_rate(self) -> float | None:
        return ratio(self.accepted, self.drafted)

    @property
    def tokens_per_pass(self) -> float | None:
        return ratio(self.tokens, self.passes)

    @property
    def tokens_per_second(self) -> float | None:
        return ratio(self.tokens, self.seconds)

    @property
    def speedup(self) -> float | None:
        """Over plain decoding; None where that was never measured."""
        return ratio(self.plain_seconds, self.timed_seconds)

    @property
    def saved_seconds(self) -> float | None:
        """Negative where plain decoding would have been faster."""
        return self.plain_seconds - self.timed_seconds if self.timed_seconds else None


class Tally:
    """Adds answers to the totals of a session, and says how each compares with plain decoding.

    Attributes:
        speedup: of the last answer; None where nothing was drafted, or plain was never measured.
    """

    def __init__(self, totals: Totals) -> None:
        self.totals = totals
        self.speedup: float | None = None
        self._plain_pass: float | None = None
        self._measured_at = 0  # tokens in the memo

    def count(self, answer: Answer, target: LlamaContext) -> None:
        plain_pass = self._plain(answer, target) if answer.statistics.drafted else None
        alone = Totals()
        for totals in (alone, self.totals):
            totals.add(answer, plain_pass)
        self.speedup = alone.speedup

    def _plain(self, answer: Answer, target: LlamaContext) -> float | None:
        """What a plain pass takes: as the policy knows it, or measured."""
        if answer.statistics.plain_seconds is not None:
            return answer.statistics.plain_seconds
        if answer.finish != "interrupted":
            self._measure(target)
        return self._plain_pass

    def _measure(self, target: LlamaContext) -> None:
        """Evaluate the last tokens of the memo again, one at a time: it is the same afterwards."""
        memo = target.memo
        if len(memo) <= PASSES or len(memo) < GROWTH * self._measured_at:
            return
        seconds: list[float] = []
        try:
            for end in range(len(memo) - PASSES + 1, len(memo) + 1):
                started = perf_counter()
                target.logits(memo[:end], last=1)
                seconds.append(perf_counter() - started)
        except Interrupted:  # then another time
            return
        self._plain_pass, self._measured_at = median(seconds), len(memo)
