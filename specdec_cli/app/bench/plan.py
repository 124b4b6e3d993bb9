"""What a benchmark runs: prompts, and the ways of drafting that are set against plain decoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from specdec_cli.app.generate import AUTO, AnswerOptions
from specdec_cli.core.options import SamplingOptions


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way of drafting."""

    drafter: str
    draft_tokens: int | None  # None: as many as pay
    rule: str

    @property
    def k(self) -> int | str:
        """The draft length as reports write it."""
        return AUTO if self.draft_tokens is None else self.draft_tokens


@dataclass(frozen=True, slots=True)
class Task:
    """One prompt, in tokens. `index` is its place among the prompts that were asked for."""

    index: int
    category: str
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Every task, plainly and with each candidate, `repetitions` times."""

    tasks: tuple[Task, ...]
    candidates: tuple[Candidate, ...]
    repetitions: int
    sampling: SamplingOptions
    seed: int
    max_tokens: int
    ignore_eos: bool = False

    @property
    def categories(self) -> tuple[str, ...]:
        """In the order in which they first appear."""
        return tuple(dict.fromkeys(task.category for task in self.tasks))

    @property
    def runs(self) -> int:
        return len(self.tasks) * (1 + len(self.candidates)) * self.repetitions

    def options(self, candidate: int | None) -> AnswerOptions:
        """How to answer with a candidate; None is plain decoding."""
        plain = AnswerOptions(
            sampling=self.sampling,
            seed=self.seed,
            drafter="none",
            draft_tokens=0,
            max_tokens=self.max_tokens,
            ignore_eos=self.ignore_eos,
        )
        if candidate is None:
            return plain
        chosen = self.candidates[candidate]
        return replace(
            plain,
            rule=chosen.rule,
            drafter=chosen.drafter,
            draft_tokens=chosen.draft_tokens,
        )

    def one_text(self, candidate: int) -> bool:
        """Does its rule promise the plain text?"""
        return self.sampling.greedy or self.candidates[candidate].rule == "coupled"


def order(arms: int, turn: int) -> Sequence[int]:
    """The arms of one interleaved group, started elsewhere each turn: none is always first."""
    return [(turn + i) % arms for i in range(arms)]
