"""Find by measuring what is fastest here: threads, batch size, draft, and guesses a round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import Event

from specdec_cli.app.bench.costs import MOST_GUESSES, measure_costs
from specdec_cli.app.bench.measure import Progress, Run, measure
from specdec_cli.app.bench.plan import Candidate, Plan, Task
from specdec_cli.app.bench.summarise import rows, totals
from specdec_cli.app.draft_models import MODEL, SELF, DraftFile
from specdec_cli.app.plain_speeds import Speed, batch_speeds, fastest, thread_speeds
from specdec_cli.app.session import SUFFIX, LoadOptions, Session
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.pass_seconds import PassSeconds
from specdec_cli.engine.language_model import Interrupted

LENGTHS = (2, 4, 8)  # fixed numbers of guesses that are set against auto
REPETITIONS = 2  # of each answer
DEPTH = 128  # tokens of context at which costs are measured
TIE = 0.03  # ways that differ by less are chosen by what they need
RULE = "coupled"


@dataclass(frozen=True, slots=True)
class Way:
    """A way of drafting: where guesses come from, and how many a round, None for auto."""

    drafter: str
    drafts: tuple[DraftFile, ...]
    draft_tokens: int | None = None


PLAIN = Way("none", ())


@dataclass(frozen=True, slots=True)
class Result:
    """A way against plain decoding in the same run; the interval holds the speed-up in 95 %."""

    way: Way
    speedup: float
    interval: tuple[float, float] | None


@dataclass(slots=True)
class Findings:
    """What has been measured so far; an interrupted run leaves less.

    Attributes:
        models: each draft model alone, where there are several.
        ways: every way of drafting with the best of them.
        notices: what a person should know about how the models were loaded.
    """

    threads: list[Speed] = field(default_factory=list)
    batches: list[Speed] = field(default_factory=list)
    models: list[Result] = field(default_factory=list)
    ways: list[Result] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    @property
    def best(self) -> Way | None:
        """Of those that are nearly as fast as the fastest, the one that needs the least.

        None where nothing was measured, or plain decoding was clearly faster than all.
        """
        fastest = max((result.speedup for result in self.ways), default=0.0)
        if fastest < 1 - TIE:
            return None
        good = [result.way for result in self.ways if result.speedup >= fastest * (1 - TIE)]
        return min(good, key=lambda way: (len(way.drafts), way.draft_tokens is not None))


@dataclass(frozen=True, slots=True)
class Work:
    """What is measured.

    Attributes:
        tasks: the prompts, in a session's tokens.
        threads, batches: to choose from, the default first; one alone is not measured.
    """

    tasks: Callable[[Session], Sequence[Task]]
    sampling: SamplingOptions
    seed: int
    max_tokens: int
    threads: Sequence[int]
    batches: Sequence[int]


def tune(
    options: LoadOptions, drafts: Sequence[DraftFile], work: Work, found: Findings, stop: Event
) -> Iterator[Progress]:
    """Fill `found`, and yield how far it is. Ends early once `stop` is set.

    Args:
        drafts: draft models under names of their own, and the target's self draft as SELF.

    Raises:
        SpecdecError: a model cannot be loaded, or no prompt fits.
    """
    options = replace(options, threads=work.threads[0], batch=work.batches[0])
    try:
        if len(work.threads) > 1 or len(work.batches) > 1:
            yield from _machine(options, work, found, stop)
        options = replace(
            options,
            threads=fastest(found.threads, work.threads[0]),
            batch=fastest(found.batches, work.batches[0]),
            draft_tokens=MOST_GUESSES,
        )
        models = [file for file in drafts if file.name != SELF]
        if len(models) > 1:
            ways = [Way(file.name, (file,)) for file in models]
            yield from _answers(options, ways, work, found, found.models, stop)
            best = max(found.models, key=lambda result: result.speedup, default=None)
            models = list(best.way.drafts) if best else []
        if not stop.is_set():
            own = [file for file in drafts if file.name == SELF]
            kept = [*(replace(file, name=MODEL) for file in models), *own]
            yield from _answers(options, ways_of(kept), work, found, found.ways, stop)
    except Interrupted:
        pass


def ways_of(drafts: Sequence[DraftFile]) -> list[Way]:
    """Everything that can be done with these drafts; in a tie the earlier one is better."""
    ways = [Way(SUFFIX, ())]
    if drafts:
        ways.append(Way("auto", tuple(drafts)))
        ways += [Way(file.name, (file,)) for file in drafts]
        ways += [Way(drafts[0].name, (drafts[0],), length) for length in LENGTHS]
    return ways


def profile(reference: str, work: Work, found: Findings) -> dict[str, str | int | bool]:
    """What was found, as options by their long names."""
    way = found.best or PLAIN
    values: dict[str, str | int | bool] = {
        "model": reference,
        "threads": fastest(found.threads, work.threads[0]),
        "batch-size": fastest(found.batches, work.batches[0]),
        "drafter": way.drafter,
        "draft-tokens": "auto" if way.draft_tokens is None else way.draft_tokens,
    }
    for file in way.drafts:
        if file.name != SELF:
            values["draft-model"] = str(file.path.absolute())
    return values


def _machine(options: LoadOptions, work: Work, found: Findings, stop: Event) -> Iterator[Progress]:
    """Threads, then the batch size with the best number of them."""
    yield Progress(0, 1, None, f"loading {options.target.stem}")
    with Session(replace(options, drafts=()), stop=stop) as session:
        if len(work.threads) > 1:
            yield from thread_speeds(session, work.threads, found.threads)
        if len(work.batches) > 1:
            threads = fastest(found.threads, work.threads[0])
            yield from batch_speeds(session, work.batches, threads, found.batches)


def _answers(
    options: LoadOptions,
    ways: Sequence[Way],
    work: Work,
    found: Findings,
    results: list[Result],
    stop: Event,
) -> Iterator[Progress]:
    """Answers by turns, plainly and in every way, from one session that has all their drafts.

    Args:
        results: of `found`; to be filled.
    """
    files = list(dict.fromkeys(file for way in ways for file in way.drafts))
    names = ", ".join([options.target.stem, *(file.path.stem for file in files)])
    yield Progress(0, 1, None, f"loading {names}")
    with Session(replace(options, drafts=tuple(files)), stop=stop) as session:
        found.notices += session.notices
        if not session.target.can_roll_back:
            return
        ways = [way for way in ways if all(file.name in session.drafters for file in way.drafts)]
        plan = Plan(
            tasks=tuple(work.tasks(session)),
            candidates=tuple(Candidate(way.drafter, way.draft_tokens, RULE) for way in ways),
            repetitions=REPETITIONS,
            sampling=work.sampling,
            seed=work.seed,
            max_tokens=work.max_tokens,
        )
        yield Progress(0, plan.runs, None, "measuring what a pass costs")
        _teach(session)
        runs: list[Run] = []
        for event in measure(session, plan):
            if isinstance(event, Run):
                runs.append(event)
                continue
            yield event
        results[:] = [
            Result(ways[total.candidate], total.speedup, total.interval)
            for total in totals(plan, rows(plan, runs))
        ]


def _teach(session: Session) -> None:
    """Let the policy start with what passes cost, as it does once a pair is known."""
    costs = measure_costs(session, min(DEPTH, session.context_size // 2), repetitions=2)
    session.experience.verify = PassSeconds(costs.target.points)
    for draft in session.drafts:
        session.experience.drafts[draft.key] = PassSeconds(costs.drafts[draft.name].points)
