"""Run a benchmark: plain and speculative answers by turns, every cache empty before each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import fmean
from time import perf_counter

from specdec_cli.app.bench.plan import Plan, Task, order
from specdec_cli.app.compare import warm_up
from specdec_cli.app.generate import Answer, answer
from specdec_cli.app.session import Session


@dataclass(frozen=True, slots=True)
class Run:
    """One answer. `candidate` None is plain decoding."""

    task: Task
    repetition: int
    candidate: int | None
    answer: Answer

    @property
    def seconds(self) -> float:
        """The whole answer: reading the prompt and everything after."""
        statistics = self.answer.statistics
        return statistics.prompt_seconds + statistics.predicted_seconds

    @property
    def tps(self) -> float:
        return self.answer.statistics.tokens / self.seconds


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a benchmark is. `seconds_left` is None until there is something to go by."""

    done: int
    total: int
    seconds_left: float | None
    doing: str


def measure(session: Session, plan: Plan) -> Iterator[Progress | Run]:
    """Yield every finished run, and before each where things stand.

    Ends early, without the run that was cut, once `session.stop` is set.
    """
    arms: list[int | None] = [None, *range(len(plan.candidates))]
    clock = _Estimate(plan)
    warm_up(session)
    done = 0
    for repetition in range(plan.repetitions):
        for number, task in enumerate(plan.tasks):
            for arm in order(len(arms), number + repetition):
                candidate = arms[arm]
                yield Progress(done, plan.runs, clock.left(), task.category)
                started = perf_counter()
                found = run(session, plan, task, repetition, candidate)
                if session.stop.is_set():
                    return
                clock.saw(task, candidate, perf_counter() - started)
                done += 1
                yield found


def run(session: Session, plan: Plan, task: Task, repetition: int, candidate: int | None) -> Run:
    """One answer from empty caches."""
    session.forget()
    *_, last = answer(session, task.tokens, plan.options(candidate))
    assert isinstance(last, Answer)
    return Run(task, repetition, candidate, last)


@dataclass
class _Estimate:
    """Time left: the mean of each arm, in its own kind of work where that was seen."""

    plan: Plan
    _seen: dict[tuple[str, int | None], list[float]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _elapsed: float = 0.0
    _done: int = 0

    def saw(self, task: Task, candidate: int | None, seconds: float) -> None:
        self._seen[task.category, candidate].append(seconds)
        self._elapsed += seconds
        self._done += 1

    def left(self) -> float | None:
        if not self._done:
            return None
        mean = self._elapsed / self._done
        known = {key: (len(times), fmean(times)) for key, times in self._seen.items()}
        total = 0.0
        for task in self.plan.tasks:
            for arm in (None, *range(len(self.plan.candidates))):
                total += known.get((task.category, arm), (0, mean))[1] * self.plan.repetitions
        return max(0.0, total - self._elapsed)
