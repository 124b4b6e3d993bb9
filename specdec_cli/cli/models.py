"""`specdec pull` and `specdec list`; fetching what another command misses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table

from specdec_cli.cli.console import Terminal
from specdec_cli.cli.declare import flat
from specdec_cli.cli.options import CommonFlags


@flat
def pull(
    reference: Annotated[
        str, typer.Argument(metavar="REF", help="A catalog name, hf:user/repo[:QUANT] or a URL.")
    ],
    common: CommonFlags,
    sha256: Annotated[
        str | None, typer.Option(help="The checksum to expect.", show_default=False)
    ] = None,
) -> None:
    """Download a model, checked; the last line on stdout is its path."""
    terminal = Terminal(common)
    path = fetch(terminal, reference, offline=common.offline, sha256=sha256)
    if common.json:
        terminal.data({"path": str(path), "size": path.stat().st_size})
    else:
        print(path)  # noqa: T201


@flat
def list_models(common: CommonFlags) -> None:
    """Models on this machine, and those that `specdec pull` knows by name."""
    from specdec_cli.models.catalog import catalog
    from specdec_cli.models.pairing import drafts_for, is_self_draft
    from specdec_cli.models.store import installed

    terminal = Terminal(common)
    here = installed()
    names = {model.catalog for model in here}
    missing = [model for model in catalog().values() if model.name not in names]
    if common.json:
        terminal.data(
            [
                {
                    "name": model.reference, "path": str(model.path), "size": model.size,
                    "source": model.source, "draft_for": list(drafts_for(model)),
                    "self_draft": is_self_draft(model.path),
                }
                for model in here
            ]
            + [
                {
                    "name": model.name, "path": None, "size": model.size,
                    "source": None, "draft_for": [], "self_draft": False,
                }
                for model in missing
            ]
        )  # fmt: skip
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("NAME", "SIZE", "SOURCE", "DRAFT FOR"):
        table.add_column(heading, justify="right" if heading == "SIZE" else "left", no_wrap=True)
    for model in here:
        table.add_row(
            model.reference, human_size(model.size), model.source, ", ".join(drafts_for(model)),
        )  # fmt: skip
    for known in missing:
        table.add_row(known.name, human_size(known.size), f"specdec pull {known.name}", "")
    if not terminal.out.is_terminal:  # a pipe has no width to fit into
        terminal.out.width = 200
    terminal.out.print(table)


def model_path(terminal: Terminal, reference: str, *, offline: bool) -> Path:
    """The file that a reference means, downloaded if it is not here.

    Raises:
        ModelFileError: an unknown reference.
        DownloadError: it is not here and could not be fetched.
    """
    from specdec_cli.models.references import resolve

    found = resolve(reference)
    if isinstance(found, Path):
        return found
    return fetch(terminal, reference, offline=offline)


def fetch(terminal: Terminal, reference: str, *, offline: bool, sha256: str | None = None) -> Path:
    """Run a download to its end, with a bar on stderr where somebody watches."""
    from specdec_cli.models import events
    from specdec_cli.models.download import pull as download

    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=terminal.err,
        disable=not terminal.live,
        transient=True,
    )
    task: TaskID | None = None
    with progress:
        for event in download(reference, offline=offline, sha256=sha256):
            match event:
                case events.Started(name, size, licence, source):
                    task = progress.add_task(name, total=size)
                    terminal.remark(
                        f"downloading {name}"
                        + (f", {human_size(size)}" if size else "")
                        + f" from the {source}"
                        + (f" (licence: {licence})" if licence else "")
                    )
                case events.Progress(done, total):
                    if task is not None:
                        progress.update(task, completed=done, total=total)
                case events.Notice(text):
                    terminal.notice(text)
                case events.Verified(digest):
                    terminal.remark(f"sha256 {digest} is right")
                case events.Done(path):
                    return path
    raise AssertionError("a download ends with Done or an error")


def human_size(size: int) -> str:
    """Decimal units, as download pages show them: 1.12 GB, 98 MB."""
    if size >= 10**9:
        return f"{size / 10**9:.2f} GB"
    return f"{size / 10**6:.0f} MB" if size >= 10**6 else f"{max(1, size // 1000)} kB"
