"""`specdec draft`: low-bit copies of targets, which draft for them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from threading import Event
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from specdec_cli.cli.console import Terminal
from specdec_cli.cli.declare import flat
from specdec_cli.cli.models import human_size, model_path
from specdec_cli.cli.options import CommonFlags, option
from specdec_cli.cli.signals import exit_if_stopped, stop_on_signals

app = typer.Typer(
    help="Make and manage self drafts: low-bit copies of a model that guess for it.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


class LowBit(StrEnum):
    Q4_0 = "Q4_0"
    Q4_1 = "Q4_1"
    Q5_0 = "Q5_0"
    Q8_0 = "Q8_0"


@app.command()
@flat
def make(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET", help="A path, a name of `specdec list`, or hf:user/repo[:QUANT]."
        ),
    ],
    *,
    low_bit: Annotated[
        LowBit,
        option("--low-bit", env=False, case_sensitive=False, help="Precision of the copy."),
    ] = LowBit.Q4_0,
    force: Annotated[
        bool, option("--force", env=False, help="Make it again where it is there already.")
    ] = False,
    common: CommonFlags,
) -> None:
    """Make a low-bit copy of TARGET that drafts for it; the last line on stdout is its path.

    Nearly everything that the copy guesses is right, since it is the same model with less
    precision. It pays where reading the target's weights is what takes the time: with targets of
    16 or 8 bits a weight. `--drafter self` uses it, and `--drafter auto` where it promises most.
    """
    terminal = Terminal(common)
    source = model_path(terminal, target, offline=common.offline)

    from specdec_cli.app.self_draft import Share, make_self_draft
    from specdec_cli.engine.language_model import Interrupted
    from specdec_cli.models.events import Done, Notice

    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=terminal.err,
        disable=not terminal.live,
        transient=True,
    )
    task = progress.add_task(f"{low_bit} copy of {source.name}", total=1.0)
    stop = Event()
    made: Path | None = None
    with stop_on_signals(stop) as signals, progress:
        try:
            for event in make_self_draft(source, low_bit.value, force=force, stop=stop.is_set):
                match event:
                    case Share(done):
                        progress.update(task, completed=done)
                    case Notice(text):
                        terminal.remark(text)
                    case Done(path):
                        made = path
        except Interrupted:
            terminal.notice("interrupted: nothing was made")
    exit_if_stopped(signals)
    assert made is not None
    if common.json:
        terminal.data({"path": str(made), "size": made.stat().st_size})
    else:
        print(made)  # noqa: T201


@app.command("list")
@flat
def list_drafts(common: CommonFlags) -> None:
    """The self drafts that were made on this machine, and what they were made of."""
    from specdec_cli.models.pairing import self_drafts

    terminal = Terminal(common)
    made = list(self_drafts())
    if common.json:
        terminal.data(
            [
                {
                    "path": str(draft.path), "size": draft.size, "type": draft.origin.type,
                    "target": draft.origin.source, "target_sha256": draft.origin.source_sha256,
                }
                for draft in made
            ]
        )  # fmt: skip
        return
    if not made:
        terminal.remark("no self draft was made yet: specdec draft make TARGET")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("NAME", "SIZE", "TYPE", "DRAFT FOR"):
        table.add_column(heading, justify="right" if heading == "SIZE" else "left", no_wrap=True)
    for draft in made:
        origin = draft.origin
        table.add_row(draft.path.stem, human_size(draft.size), origin.type, origin.source)
    if not terminal.out.is_terminal:  # a pipe has no width to fit into
        terminal.out.width = 200
    terminal.out.print(table, markup=False)


@app.command("rm")
@flat
def remove(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A self draft, as `specdec draft list` has it.")
    ],
    common: CommonFlags,
) -> None:
    """Delete a self draft. Other models are never deleted."""
    from specdec_cli.app.self_draft import remove as delete

    terminal = Terminal(common)
    removed = delete(name)
    if common.json:
        terminal.data({"path": str(removed.path), "size": removed.size})
    else:
        terminal.remark(f"deleted {removed.path} ({human_size(removed.size)})")
