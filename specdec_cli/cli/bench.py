"""`specdec bench`: does speculation pay here, with which draft and which length?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specdec_cli.cli.bench_options import (
    ReportFlags,
    SweepFlags,
    WorkFlags,
    numbers,
)
from specdec_cli.cli.bench_report import Report
from specdec_cli.cli.console import Terminal
from specdec_cli.cli.declare import flat
from specdec_cli.cli.loading import check_together, draft_path, load_models, prompt_ids
from specdec_cli.cli.models import model_path
from specdec_cli.cli.options import CommonFlags, DrafterKind
from specdec_cli.cli.request_options import MeasuredSamplingFlags, PromptFlags
from specdec_cli.cli.signals import exit_if_stopped, stop_on_signals
from specdec_cli.errors import CheckFailed, PromptTooLong, UsageError

if TYPE_CHECKING:
    from specdec_cli.app.bench.benchmark import Document
    from specdec_cli.app.bench.measure import Progress
    from specdec_cli.app.bench.plan import Candidate, Task
    from specdec_cli.app.bench.workloads import Workload
    from specdec_cli.app.session import Session

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
        return
    terminal = Terminal(common)
    chosen = sampling.options()
    check_together(load, chosen, text, load.rules)
    _check_work(work)
    output = Report(terminal, report)
    workload = _workload(work)
    target = model_path(terminal, load.model, offline=common.offline)
    drafts = _drafts(terminal, load, target, offline=common.offline)

    from specdec_cli.app.bench.benchmark import benchmark, costs_alone, synthetic
    from specdec_cli.app.bench.costs import MOST_GUESSES
    from specdec_cli.app.bench.plan import Plan

    candidates = _candidates(terminal, load, list(drafts), needed=not work.costs)
    guesses = max(MOST_GUESSES, *load.lengths)
    with (
        load_models(terminal, common, load, target, drafts, guesses=guesses) as session,
        stop_on_signals(session.stop) as signals,
    ):
        none = work.costs or work.synthetic_acceptance is not None
        tasks, skipped = ([], []) if none else _tasks(terminal, session, work, text, workload)
        plan = Plan(
            tasks=tuple(tasks),
            candidates=tuple(candidates),
            repetitions=work.times,
            sampling=chosen,
            seed=sampling.chosen_seed(),
            max_tokens=work.tokens,
            ignore_eos=work.ignore_eos,
        )
        if work.costs:
            events = costs_alone(session, plan, numbers("--depth", work.depth), work.times)
        elif work.synthetic_acceptance is not None:
            events = synthetic(session, plan, work.synthetic_acceptance)
        else:
            events = benchmark(session, plan, workload=workload.name, skipped=skipped)
        document = _watch(terminal, events)
    failures = output.write(document) if document else []
    exit_if_stopped(signals)
    if failures:
        raise CheckFailed(failures[0], why="; ".join(failures[1:]) or "see the table", fix=FIX)


FIX = "look at what changed: specdec bench compare shows two saved runs side by side"


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


def _check_work(work: WorkFlags) -> None:
    chosen = {
        "--quick": work.quick,
        "--prompts": work.prompts is not None,
        "-p": work.sizes is not None,
        "--costs": work.costs,
        "--synthetic-acceptance": work.synthetic_acceptance is not None,
    }
    names = [name for name, given in chosen.items() if given]
    if len(names) > 1:
        raise UsageError(
            f"{names[0]} and {names[1]} do not go together",
            why="each says what is measured",
            fix="give one of them",
        )
    if work.sizes is not None:
        numbers("-p", work.sizes)
    numbers("--depth", work.depth)


def _workload(work: WorkFlags) -> Workload:
    """Raises:
    UsageError: a file that cannot be used, or a category that is not there.
    """
    from specdec_cli.app.bench import workloads

    if work.sizes is not None:
        return workloads.Workload("synthetic", ())
    if work.prompts is not None:
        chosen = workloads.from_file(work.prompts)
    else:
        chosen = workloads.quick() if work.quick else workloads.full()
    return workloads.only(chosen, work.categories)


def _drafts(
    terminal: Terminal, load: SweepFlags, target: Path, *, offline: bool
) -> dict[str, Path]:
    """By the names under which they are drafters; several are told apart by their references."""
    if not {DrafterKind.auto, DrafterKind.model} & set(load.drafters):
        return {}
    wanted: dict[str | None, None] = dict.fromkeys(
        [*load.draft_model] if load.draft_model else [None]
    )
    found = {}
    for reference in wanted:
        name = "model" if len(wanted) == 1 or reference is None else reference
        path = draft_path(terminal, load, target, reference, offline=offline)
        if path is not None:
            found[name] = path
    return found


def _candidates(
    terminal: Terminal, load: SweepFlags, drafts: list[str], *, needed: bool
) -> list[Candidate]:
    """Every drafter with every length and rule.

    Raises:
        UsageError: nothing is left to set against plain decoding.
    """
    from specdec_cli.app.bench.plan import Candidate

    names: list[str] = []
    for kind in load.drafters:
        if kind is DrafterKind.auto:
            names += drafts or [DrafterKind.suffix]
        elif kind is DrafterKind.model:
            names += drafts
            if not drafts:
                terminal.notice("no draft model for this target: give one with -md")
        elif kind is not DrafterKind.none:
            names.append(kind)
    found = [
        Candidate(name, length, rule.value)
        for name in dict.fromkeys(map(str, names))
        for length in load.lengths
        for rule in load.rules
        if length > 0
    ]
    if not found and needed:
        raise UsageError(
            "there is nothing to compare with plain decoding",
            why=f"--drafter {load.drafter} -k {load.draft_tokens} leaves no way of drafting",
            fix="for example --drafter suffix, or -md REF -k 4",
        )
    return found


def _tasks(
    terminal: Terminal, session: Session, work: WorkFlags, text: PromptFlags, workload: Workload
) -> tuple[list[Task], list[dict[str, Any]]]:
    """Prompts as tokens, and those that do not fit, with the reason.

    Raises:
        PromptTooLong: none fits.
    """
    from dataclasses import replace

    from specdec_cli.app.bench.plan import Task
    from specdec_cli.app.bench.workloads import synthetic
    from specdec_cli.engine.llama.chat_template import raw_tokens

    if work.sizes is not None:
        vocabulary = session.model.vocabulary
        made = synthetic(numbers("-p", work.sizes), lambda words: raw_tokens(vocabulary, words))
        entries = [(entry.category, list(entry.tokens)) for entry in made]
    else:
        entries = [
            (
                entry.category,
                prompt_ids(
                    terminal, session, entry.prompt,
                    replace(text, system=entry.system or text.system),
                ),
            )
            for entry in workload.prompts
        ]  # fmt: skip
    tasks, skipped = [], []
    for index, (category, ids) in enumerate(entries):
        if len(ids) < session.context_size:
            tasks.append(Task(index, category, tuple(ids)))
        else:
            reason = f"{len(ids)} tokens, the context has {session.context_size}"
            skipped.append({"prompt": index, "category": category, "reason": reason})
            terminal.notice(f"prompt {index + 1} ({category}) is left out: {reason}")
    if not tasks:
        raise PromptTooLong(
            "no prompt fits the context",
            why=f"the shortest has {min(len(ids) for _, ids in entries)} tokens, "
            f"the context {session.context_size}",
            fix="use a larger -c",
        )
    return tasks, skipped


def _watch(terminal: Terminal, events: Iterator[Progress | Document]) -> Document | None:
    """Show how far it is until the document comes."""
    document = None
    with terminal.working("warming up") as say:
        for event in events:
            if isinstance(event, dict):
                document = event
            else:
                say(_progress(event))
    return document


def _progress(event: Progress) -> str:
    words = f"{event.doing} · {event.done}/{event.total}"
    if event.seconds_left is None:
        return words
    left = event.seconds_left
    return f"{words} · about {f'{left / 60:.0f} min' if left >= 90 else f'{left:.0f} s'} left"
