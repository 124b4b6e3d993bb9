"""`/stats`: the answers of a session, summed."""

from __future__ import annotations

from dataclasses import dataclass

from specdec_cli.core.statistics import Statistics, ratio


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

    def add(
        self, statistics: Statistics, *, prompt: int, cached: int, plain_pass: float | None
    ) -> None:
        """`plain_pass`: measured seconds of a target pass without guesses; None: not measured."""
        self.answers += 1
        self.tokens += statistics.tokens
        self.passes += statistics.passes
        self.drafted += statistics.drafted
        self.accepted += statistics.accepted
        self.prompt_tokens += prompt
        self.cached_tokens += cached
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
