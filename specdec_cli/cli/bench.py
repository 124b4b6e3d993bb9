"""`specdec bench`: does speculation pay here, with which draft and which length?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from specdec_cli.cli.bench_options import ReportFlags, SweepFlags, WorkFlags, numbers
from specdec_cli.cli.bench_report import Report
from specdec_cli.cli.bench_work import (
    check_flags,
    check_target,
    find_candidates,
    find_drafts,
    find_tasks,
    find_workload,
)
from specdec_cli.cli.console import Terminal
from specdec_cli.cli.declare import flat
from specdec_cli.cli.loading import check_together, load_models
from specdec_cli.cli.models import model_path
from specdec_cli.cli.options import CommonFlags
from specdec_cli.cli.request_options import MeasuredSamplingFlags, PromptFlags
from specdec_cli.cli.settings import pass_on
from specdec_cli.cli.signals import exit_if_stopped, stop_on_signals
from specdec_cli.errors import SpecdecError

if TYPE_CHECKING:
    from specdec_cli.app.bench.benchmark import Document
    from specdec_cli.app.bench.measure import Progress

SILENCE = 60.0  # seconds between two lines of progress where no line can be redrawn

app = typer.Typer(
    invoke_without_command=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


@app.callback()
@flat
def bench(
    context: typer.Context,
    work: WorkFlags,
    load: SweepFlags,
    sampling: MeasuredSamplingFlags,
    text: PromptFlags,
    report: ReportFlags,
    common: CommonFlags,
) -> None:
    """Measure speculation against plain decoding, by turns in one run, with a same-text check.

    Prints a table: for each kind of work and each candidate the speed-up with its interval, what
    was accepted, where the time went, and how near it is to an oracle that knew which guesses
    would be accepted. `specdec bench compare A.json B.json` sets two saved runs side by side.
    """
    if context.invoked_subcommand is not None:
        pass_on(context, common)
        return
    terminal = Terminal(common)
    chosen = sampling.options()
    check_together(load, chosen, text, load.rules)
    check_flags(work, load)
    output = Report(terminal, report)
    workload = find_workload(work)
    target = model_path(terminal, load.model, offline=common.offline)
    drafts = find_drafts(terminal, load, target, offline=common.offline)
    candidates = find_candidates(terminal, load, list(drafts), needed=not work.costs)

    from specdec_cli.app.bench.benchmark import benchmark, costs_alone, synthetic
    from specdec_cli.app.bench.costs import MOST_GUESSES
    from specdec_cli.app.bench.plan import Plan
    from specdec_cli.app.bench.planned import SYNTHETIC

    guesses = max([MOST_GUESSES, *(length for length in load.lengths if length)])
    with (
        load_models(terminal, common, load, target, drafts, guesses=guesses) as session,
        stop_on_signals(session.stop) as signals,
    ):
        check_target(session)
        answers = not work.costs and work.synthetic_acceptance is None
        tasks, skipped = (
            find_tasks(terminal, session, work, text, workload) if answers else ([], [])
        )
        plan = Plan(
            tasks=tuple(tasks),
            candidates=tuple(candidates),
            repetitions=work.times,
            sampling=chosen,
            seed=sampling.chosen_seed(),
            max_tokens=work.tokens,
            ignore_eos=work.ignore_eos,
        )
        measured = () if work.costs else plan.candidates
        output.check_shared(measured, plan.categories or (SYNTHETIC,))
        if work.costs:
            events = costs_alone(session, plan, numbers("--depth", work.depths), work.times)
        elif work.synthetic_acceptance is not None:
            events = synthetic(session, plan, work.synthetic_acceptance)
        else:
            events = benchmark(session, plan, workload=workload.name, skipped=skipped)
        document, failure = watch(terminal, events)
    code = output.write(document, failure) if document else 0
    exit_if_stopped(signals)
    raise typer.Exit(code)


@app.command("compare")
@flat
def compare(
    before: Annotated[Path, typer.Argument(help="A file that `--save` wrote.")],
    after: Annotated[Path, typer.Argument(help="Another one.")],
    *,
    common: CommonFlags,
) -> None:
    """Set two saved benchmarks side by side: speed-ups, not raw speeds, as machines are noisy."""
    from dataclasses import asdict

    from specdec_cli.app.bench import comparison
    from specdec_cli.app.bench.saved import read
    from specdec_cli.cli.bench_comparison import comparison_markdown

    terminal = Terminal(common)
    found = comparison.compare(read(before), read(after))
    if common.json:
        terminal.data(asdict(found))
    else:
        terminal.line(comparison_markdown(found).rstrip())


def watch(
    terminal: Terminal, events: Iterator[Progress | Document]
) -> tuple[Document | None, SpecdecError | None]:
    """Show how far it is until the document comes; in a log a line now and then.

    Returns:
        The document, and what went wrong after the answers in it.
    """
    document = None
    said = perf_counter()
    with terminal.working("warming up") as say:
        try:
            for event in events:
                if isinstance(event, dict):
                    document = event
                    continue
                say(_words(event))
                if not terminal.live and perf_counter() - said >= SILENCE:
                    terminal.remark(_words(event))
                    said = perf_counter()
        except SpecdecError as error:
            if document is None:
                raise
            return document, error
    return document, None


def _words(event: Progress) -> str:
    words = f"{event.doing} · {event.done}/{event.total}"
    if event.seconds_left is None:
        return words
    left = event.seconds_left
    return f"{words} · about {f'{left / 60:.0f} min' if left >= 90 else f'{left:.0f} s'} left"
