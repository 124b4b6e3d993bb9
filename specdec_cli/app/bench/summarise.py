"""Runs -> figures: one row for each kind of work and each candidate, and the sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from specdec_cli.app.bench.measure import Run
from specdec_cli.app.bench.plan import Plan, Task
from specdec_cli.core.resampling import (
    geometric_mean,
    overall_interval,
    speedup,
    speedup_interval,
)
from specdec_cli.core.statistics import Statistics

Interval = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Pair:
    """A speculative run and the plain run of the same prompt and repetition."""

    plain: Run
    speculative: Run

    @property
    def ratio(self) -> float:
        return self.speculative.tps / self.plain.tps


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """Where the speculative text of a prompt first left the plain one; ids, -1 where it ended."""

    task: Task
    position: int
    tokens: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Row:
    """One candidate on one kind of work; what each figure means is in docs/benchmarks.md."""

    category: str
    candidate: int
    prompts: int
    ratios: tuple[tuple[float, ...], ...]  # by prompt, by repetition
    plain_tps: float
    tps: float
    plain_spread: float | None
    spread: float | None
    interval: Interval
    counts: Statistics  # summed over all speculative runs
    first_token_seconds: float | None
    plain_first_token_seconds: float | None
    identical: bool | None
    first_difference: FirstDifference | None
    decision: str

    @property
    def speedup(self) -> float:
        """Geometric mean over prompts of the median over repetitions."""
        found = speedup(self.ratios)
        assert found is not None  # a row has at least one pair
        return found

    @property
    def pairs(self) -> int:
        return sum(map(len, self.ratios))


@dataclass(frozen=True, slots=True)
class Total:
    """One candidate over all kinds of work, each counting the same."""

    candidate: int
    speedup: float
    interval: Interval
    worst: Row


def rows(plan: Plan, runs: Sequence[Run]) -> list[Row]:
    """Figures for everything of which a plain and a speculative run were finished."""
    found = []
    for category in plan.categories:
        for candidate in range(len(plan.candidates)):
            if pairs := _pairs(runs, category, candidate):
                found.append(_row(plan, category, candidate, pairs))
    return found


def totals(plan: Plan, rows: Sequence[Row]) -> list[Total]:
    """Over the kinds of work that all of them have done: an interrupted run may have more rows."""
    measured = {row.candidate for row in rows}
    done = Counter(row.category for row in rows)
    shared = [row for row in rows if done[row.category] == len(measured)]
    found = []
    for candidate in range(len(plan.candidates)):
        if own := [row for row in shared if row.candidate == candidate]:
            found.append(
                Total(
                    candidate,
                    geometric_mean([row.speedup for row in own]),
                    overall_interval([row.ratios for row in own]),
                    min(own, key=lambda row: row.speedup),
                )
            )
    return found


def _pairs(runs: Sequence[Run], category: str, candidate: int) -> list[list[Pair]]:
    """By prompt, every repetition of which both runs are there."""
    plain = {(run.task.index, run.repetition): run for run in runs if run.candidate is None}
    by_task: dict[int, list[Pair]] = {}
    for run in runs:
        partner = plain.get((run.task.index, run.repetition))
        if run.candidate == candidate and run.task.category == category and partner:
            by_task.setdefault(run.task.index, []).append(Pair(partner, run))
    return list(by_task.values())


def _row(plan: Plan, category: str, candidate: int, pairs: list[list[Pair]]) -> Row:
    ratios = tuple(tuple(pair.ratio for pair in of_prompt) for of_prompt in pairs)
    flat = [pair for of_prompt in pairs for pair in of_prompt]
    differences = [found for pair in flat if (found := first_difference(pair))]
    promised = plan.one_text(candidate)
    return Row(
        category=category,
        candidate=candidate,
        prompts=len(pairs),
        ratios=ratios,
        plain_tps=_rate(pairs, lambda pair: pair.plain.tps),
        tps=_rate(pairs, lambda pair: pair.speculative.tps),
        plain_spread=_spread(pairs, lambda pair: pair.plain.tps),
        spread=_spread(pairs, lambda pair: pair.speculative.tps),
        interval=speedup_interval(ratios),
        counts=summed(pair.speculative.answer.statistics for pair in flat),
        first_token_seconds=_first_token(pair.speculative for pair in flat),
        plain_first_token_seconds=_first_token(pair.plain for pair in flat),
        identical=not differences if promised else None,
        first_difference=differences[0] if promised and differences else None,
        decision=flat[-1].speculative.answer.decision,
    )


def first_difference(pair: Pair) -> FirstDifference | None:
    plain, speculative = pair.plain.answer.tokens, pair.speculative.answer.tokens
    if plain == speculative:
        return None
    at = next(
        (i for i, (a, b) in enumerate(zip(plain, speculative, strict=False)) if a != b),
        min(len(plain), len(speculative)),
    )
    ids = [text[at] if at < len(text) else -1 for text in (plain, speculative)]
    return FirstDifference(pair.plain.task, at, (ids[0], ids[1]))


def summed(parts: Iterable[Statistics]) -> Statistics:
    """Counts and times of many answers as if they were one."""
    total = Statistics()
    for part in parts:
        total.merge(part)
    return total


def per_position(counts: Statistics, guesses: int) -> list[float]:
    """Entry i: the share of proposals whose guess i was accepted (vLLM's per-position rate).

    Args:
        counts: of at least one proposal.
        guesses: how many a round may have.
    """
    return [sum(counts.histogram[i:]) / counts.drafts for i in range(1, guesses + 1)]


def _rate(pairs: list[list[Pair]], tps: Callable[[Pair], float]) -> float:
    return geometric_mean([median(map(tps, of_prompt)) for of_prompt in pairs])


def _spread(pairs: list[list[Pair]], tps: Callable[[Pair], float]) -> float | None:
    """(max - min) / median over the repetitions of a prompt; the median over prompts."""
    spreads = []
    for of_prompt in pairs:
        rates = [tps(pair) for pair in of_prompt]
        if len(rates) > 1:
            spreads.append((max(rates) - min(rates)) / median(rates))
    return median(spreads) if spreads else None


def _first_token(runs: Iterable[Run]) -> float | None:
    times = [time for run in runs if (time := run.answer.first_token_seconds) is not None]
    return fmean(times) if times else None
