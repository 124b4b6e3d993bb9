"""What a benchmark measures: from flags to prompts, drafts and candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specdec_cli.cli.bench_options import SweepFlags, WorkFlags, numbers
from specdec_cli.cli.console import Terminal
from specdec_cli.cli.draft_files import draft_path, self_draft_path
from specdec_cli.cli.loading import prompt_ids
from specdec_cli.cli.options import DrafterKind
from specdec_cli.cli.request_options import PromptFlags
from specdec_cli.errors import PromptTooLong, UsageError

if TYPE_CHECKING:
    from specdec_cli.app.bench.plan import Candidate, Task
    from specdec_cli.app.bench.workloads import Workload
    from specdec_cli.app.session import Session


def check_flags(work: WorkFlags, load: SweepFlags) -> None:
    """Everything that can be known to be wrong before a file is looked for.

    Raises:
        UsageError: options that exclude each other, or a list that is none.
    """
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
    if work.depth is not None and not work.costs:
        raise UsageError(
            "--depth is for --costs",
            why="answers are measured at the depths that their prompts have",
            fix="add --costs, or leave it out",
        )
    numbers("--depth", work.depths)
    if work.sizes is not None:
        numbers("-p", work.sizes)
    _ = load.lengths, load.drafters


def find_workload(work: WorkFlags) -> Workload:
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


def find_drafts(
    terminal: Terminal, load: SweepFlags, target: Path, *, offline: bool
) -> dict[str, Path]:
    """By the names under which they are drafters; several are told apart by their own names."""
    kinds = set(load.drafters)
    wanted: list[str | None] = [*dict.fromkeys(load.draft_model or ())]
    found = {}
    if {DrafterKind.auto, DrafterKind.model} & kinds:
        names = _short([name for name in wanted if name]) if len(wanted) > 1 else ["model"]
        for name, reference in zip(names, wanted or [None], strict=True):
            path = draft_path(terminal, load, target, reference, offline=offline)
            if path is not None:
                found[name] = path
    else:
        for reference in wanted:
            terminal.notice(f"--drafter {load.drafter}: {reference} is not loaded")
    needed = DrafterKind.self in kinds
    if needed or (DrafterKind.auto in kinds and None in load.lengths):
        path = self_draft_path(load.model, target, needed=needed)
        if path is not None:
            found[DrafterKind.self.value] = path
    return found


def find_candidates(
    terminal: Terminal, load: SweepFlags, drafts: list[str], *, needed: bool
) -> list[Candidate]:
    """Every drafter with every length and rule.

    Raises:
        UsageError: nothing is left to set against plain decoding.
    """
    from specdec_cli.app.bench.plan import Candidate

    models = [name for name in drafts if name != DrafterKind.self]
    if DrafterKind.model in load.drafters and not models:
        terminal.notice("no draft model for this target: give one with -md")
    meant: dict[DrafterKind, list[str]] = {DrafterKind.model: models, DrafterKind.none: []}
    found = []
    for kind in load.drafters:
        for length in load.lengths:
            names = meant.get(kind, [kind.value])
            if kind is DrafterKind.auto and length is not None:  # a length needs one source
                names = models or drafts or [DrafterKind.suffix.value]
            for name in names if length != 0 else ():
                found += [Candidate(name, length, rule.value) for rule in load.rules]
    found = list(dict.fromkeys(found))
    if not found and needed:
        raise UsageError(
            "there is nothing to compare with plain decoding",
            why=f"--drafter {load.drafter} -k {load.draft_tokens} leaves no way of drafting",
            fix="for example --drafter suffix, or -md REF -k 4",
        )
    return found


def check_target(session: Session) -> None:
    """Raises:
    UsageError: a target that never drafts, and whose passes cannot be timed one by one.
    """
    from specdec_cli.app.session import NO_ROLL_BACK

    if not session.target.can_roll_back:
        raise UsageError(
            "there is nothing to compare with plain decoding",
            why=NO_ROLL_BACK,
            fix="choose another target with -m",
        )


def find_tasks(
    terminal: Terminal, session: Session, work: WorkFlags, text: PromptFlags, workload: Workload
) -> tuple[list[Task], list[dict[str, Any]]]:
    """Prompts as tokens, and those that do not fit, with the reason.

    Raises:
        PromptTooLong: none fits.
    """
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


def _short(references: Sequence[str]) -> list[str]:
    """A file goes by its name without directories, where that is no other drafter's name."""
    short = [Path(name).stem if name.endswith(".gguf") else name for name in references]
    taken = [*short, *DrafterKind]
    return [
        name if taken.count(name) == 1 else reference
        for name, reference in zip(short, references, strict=True)
    ]
