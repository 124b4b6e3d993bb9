"""Rounds -> the field's numbers, in the field's words (vLLM's definitions)."""

from __future__ import annotations

from dataclasses import dataclass, field

from specdec_cli.core.rounds import Round


@dataclass(slots=True)
class SourceCount:
    drafted: int = 0
    accepted: int = 0


@dataclass(slots=True)
class Statistics:
    """Sums over the rounds of one answer.

    Attributes:
        histogram: entry i counts the target passes in which i guesses were accepted.
        drafts: passes that checked a proposal.
        prompt_seconds: the target's prefill, the pass of the first round; in no other sum.
        plain_seconds: what a plain pass would take now, where that is known.
    """

    tokens: int = 0
    drafts: int = 0
    drafted: int = 0
    accepted: int = 0
    histogram: list[int] = field(default_factory=list)
    by_source: dict[str, SourceCount] = field(default_factory=dict)
    prompt_seconds: float = 0.0
    draft_seconds: float = 0.0
    target_seconds: float = 0.0
    other_seconds: float = 0.0
    plain_seconds: float | None = None

    def add(self, round: Round) -> None:
        if not self.passes:
            self.prompt_seconds = round.seconds.target
        else:
            self.target_seconds += round.seconds.target
        self.draft_seconds += round.seconds.draft
        self.other_seconds += round.seconds.other
        self.tokens += len(round.emitted)
        self.histogram += [0] * (round.accepted + 1 - len(self.histogram))
        self.histogram[round.accepted] += 1
        if proposed := len(round.proposal):
            self.drafts += 1
            self.drafted += proposed
            self.accepted += round.accepted
            source = self.by_source.setdefault(round.proposal.source, SourceCount())
            source.drafted += proposed
            source.accepted += round.accepted

    def merge(self, other: Statistics) -> None:
        """Add the sums of another answer."""
        for name in (
            "tokens", "drafts", "drafted", "accepted",
            "prompt_seconds", "draft_seconds", "target_seconds", "other_seconds",
        ):  # fmt: skip
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.histogram += [0] * (len(other.histogram) - len(self.histogram))
        for accepted, passes in enumerate(other.histogram):
            self.histogram[accepted] += passes
        for name, count in other.by_source.items():
            source = self.by_source.setdefault(name, SourceCount())
            source.drafted += count.drafted
            source.accepted += count.accepted

    @property
    def passes(self) -> int:
        """Target passes that emitted a token, the prefill's included."""
        return sum(self.histogram)

    @property
    def predicted_seconds(self) -> float:
        """Everything after the prompt's first logits."""
        return self.draft_seconds + self.target_seconds + self.other_seconds

    @property
    def tokens_per_second(self) -> float | None:
        return ratio(self.tokens, self.predicted_seconds)

    @property
    def acceptance_rate(self) -> float | None:
        return ratio(self.accepted, self.drafted)

    @property
    def mean_acceptance_length(self) -> float | None:
        """1 + accepted per pass that had a proposal: counts the target's own token."""
        return 1 + self.accepted / self.drafts if self.drafts else None

    @property
    def tokens_per_pass(self) -> float | None:
        return ratio(self.tokens, self.passes)

    @property
    def predicted_speedup(self) -> float | None:
        """Against plain decoding after the prompt, by what a plain pass costs; not measured."""
        if self.plain_seconds is None or self.tokens < 2:
            return None
        return ratio((self.tokens - 1) * self.plain_seconds, self.predicted_seconds)

    @property
    def draft_share(self) -> float | None:
        """Share of the time after the prompt that went into drafting."""
        return ratio(self.draft_seconds, self.predicted_seconds)


def ratio(part: float, whole: float) -> float | None:
    """part / whole; None, never NaN, where there is nothing to divide by."""
    return part / whole if whole > 0 else None
