"""`specdec tune`: what is fastest on this machine, written down as a profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from specdec_cli.cli.console import Terminal
from specdec_cli.cli.declare import flat
from specdec_cli.cli.draft_files import self_draft_path
from specdec_cli.cli.loading import check_together, load_options, prompt_ids
from specdec_cli.cli.models import model_path
from specdec_cli.cli.options import AUTO_DRAFT_TOKENS, CommonFlags, TargetFlags, option
from specdec_cli.cli.request_options import MeasuredSamplingFlags, PromptFlags
from specdec_cli.cli.signals import exit_if_stopped, stop_on_signals
from specdec_cli.cli.tune_report import document, show

if TYPE_CHECKING:
    from specdec_cli.app.bench.plan import Task
    from specdec_cli.app.draft_models import DraftFile
    from specdec_cli.app.prompts import Prompt
    from specdec_cli.app.session import LoadOptions, Session

CATEGORIES = ("chat", "code")  # of the built-in prompts: what guesses badly, and what well
MOST_PROMPTS = 4
MOST_DRAFTS = 3
GIVEN = ("COMMANDLINE", "ENVIRONMENT")  # where a value comes from that is not to be questioned


@dataclass(frozen=True)
class TuneFlags(TargetFlags):
    """What is tried, and where the result goes."""

    draft_model: Annotated[
        list[str] | None,
        option("-md", "--draft-model", metavar="REF", panel="Models", show_default=False,
               help="Draft to try; may be repeated.  [default: every compatible one that is here]"),
    ] = None  # fmt: skip
    prompts: Annotated[
        Path | None,
        option("--prompts", metavar="FILE", panel="Tuning", env=False, show_default=False,
               help='JSON lines {"prompt": ...}, the first four count.  [default: two of our own]'),
    ] = None  # fmt: skip
    max_tokens: Annotated[
        int,
        option("-n", "--max-tokens", metavar="N", min=8, max=4096, panel="Tuning",
               help="Tokens an answer."),
    ] = 48  # fmt: skip
    profile_name: Annotated[
        str,
        option("--profile-name", metavar="NAME", panel="Tuning", env=False,
               help="What to call the profile."),
    ] = "tuned"  # fmt: skip
    dry_run: Annotated[
        bool,
        option("--dry-run", panel="Tuning", env=False, help="Print the profile, write nothing."),
    ] = False  # fmt: skip


@flat
def tune(
    context: typer.Context,
    flags: TuneFlags,
    sampling: MeasuredSamplingFlags,
    text: PromptFlags,
    common: CommonFlags,
) -> None:
    """Find what is fastest here, in a few minutes, and keep it as a profile of the configuration.

    Threads, batch size, which draft, how many guesses a round: measured by turns in one run, on
    your prompts or two of ours. Use the result with `--profile tuned`. What is given by an option
    (`-t`, `-b`, `-md`) is not questioned.
    """
    from specdec_cli.app.bench import workloads
    from specdec_cli.app.plain_speeds import BATCHES, thread_choices
    from specdec_cli.app.profiles import check, write_profile
    from specdec_cli.app.tune import Findings, Work, profile
    from specdec_cli.app.tune import tune as tuning

    terminal = Terminal(common)
    chosen = sampling.options()
    check_together(flags, chosen, text, [])
    if not flags.dry_run:
        check(flags.profile_name)
    asked = workloads.from_file(flags.prompts).prompts if flags.prompts else _own_prompts()
    if len(asked) > MOST_PROMPTS:
        terminal.remark(f"the first {MOST_PROMPTS} of {len(asked)} prompts are used")
    target = model_path(terminal, flags.model, offline=common.offline)
    options = load_options(terminal, common, flags, target, guesses=AUTO_DRAFT_TOKENS)
    work = Work(
        tasks=lambda session: _tasks(terminal, session, text, asked[:MOST_PROMPTS]),
        sampling=chosen,
        seed=sampling.chosen_seed(),
        max_tokens=flags.max_tokens,
        threads=_given(context, "threads") or thread_choices(),
        batches=_given(context, "batch_size") or BATCHES,
    )
    drafts = _drafts(terminal, flags, target, options, offline=common.offline)
    found, stop = Findings(), Event()
    with stop_on_signals(stop) as signals, terminal.working("loading") as say:
        for event in tuning(options, drafts, work, found, stop):
            left = event.seconds_left
            soon = f" · about {left:.0f} s left" if left else ""
            say(f"{event.doing} · {event.done}/{event.total}{soon}")
    for notice in found.notices:
        terminal.notice(notice)
    values = None
    if not signals.received:
        values = profile(_reference(flags.model, target), work, found) | _switches(flags)
    if not common.json:
        show(terminal, found, work, flags.profile_name, values)
    written = None
    if values is not None and not flags.dry_run:
        written = write_profile(flags.profile_name, values)
        terminal.remark(f"written to {written}: specdec run --profile {flags.profile_name} ...")
    if common.json:
        terminal.data(document(found, values, flags.profile_name, written))
    if signals.received:
        terminal.notice("interrupted: this is what was measured so far, and nothing was written")
    exit_if_stopped(signals)


def _own_prompts() -> Sequence[Prompt]:
    from specdec_cli.app.bench import workloads

    return workloads.only(workloads.quick(), CATEGORIES).prompts


def _tasks(
    terminal: Terminal, session: Session, text: PromptFlags, asked: Sequence[Prompt]
) -> list[Task]:
    """Raises:
    PromptTooLong: a prompt does not fit.
    """
    from dataclasses import replace

    from specdec_cli.app.bench.plan import Task
    from specdec_cli.app.generate import check_prompt

    tasks = []
    for index, prompt in enumerate(asked):
        flags = replace(text, system=prompt.system or text.system)
        ids = prompt_ids(terminal, session, prompt.prompt, flags)
        check_prompt(ids, session.context_size)
        tasks.append(Task(index, prompt.category, tuple(ids)))
    return tasks


def _drafts(
    terminal: Terminal, flags: TuneFlags, target: Path, options: LoadOptions, *, offline: bool
) -> list[DraftFile]:
    """What is asked for, or every draft that is here; what does not fit the memory is left out."""
    from specdec_cli.app.draft_choice import fit
    from specdec_cli.app.draft_models import SELF, DraftFile
    from specdec_cli.models.pairing import compatible, partner, self_draft
    from specdec_cli.models.references import Missing

    if flags.draft_model:
        paths = [model_path(terminal, name, offline=offline) for name in flags.draft_model]
    else:
        first = partner(target, flags.model)
        if isinstance(first, Missing):
            terminal.remark(f"a draft for it is not here: specdec pull {first.reference}")
        paths = [*([first] if isinstance(first, Path) else []), *compatible(target)]
        paths = [each for path in paths for each in (self_draft(path), path) if each]
    paths = list({path.resolve(): path for path in paths}.values())
    if len(paths) > MOST_DRAFTS and not flags.draft_model:
        terminal.remark(f"{MOST_DRAFTS} of {len(paths)} drafts are tried; -md chooses others")
        paths = paths[:MOST_DRAFTS]
    optional = not flags.draft_model
    found = [DraftFile(path, _name(path, paths), optional=optional) for path in paths]
    if own := self_draft_path(flags.model, target, needed=False):
        found.append(DraftFile(own, SELF, optional=True))
    choice = fit(options, found)
    for reason in choice.left_out:
        terminal.notice(reason)
    return list(choice.drafts)


def _switches(flags: TuneFlags) -> dict[str, bool]:
    """What the measurements hold for, and nothing else."""
    names = ("cross_vocab", "exact", "exact_best_effort")
    return {name.replace("_", "-"): True for name in names if getattr(flags, name)}


def _name(path: Path, paths: Sequence[Path]) -> str:
    alone = [other.stem for other in paths].count(path.stem) == 1
    return path.stem if alone else str(path)


def _reference(reference: str, target: Path) -> str:
    """How a profile names the target wherever it is used: a path from the root, or as given."""
    return str(target.absolute()) if Path(reference).expanduser().exists() else reference


def _given(context: typer.Context, name: str) -> list[int]:
    """The value of an option that was given for this run; configured ones may be improved on."""
    source = context.get_parameter_source(name)
    return [context.params[name]] if source is not None and source.name in GIVEN else []
