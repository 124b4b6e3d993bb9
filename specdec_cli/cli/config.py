"""`specdec config`: what is configured, and where."""

from __future__ import annotations

import typer
from rich.table import Table

from specdec_cli.cli.console import Terminal
from specdec_cli.cli.declare import flat
from specdec_cli.cli.options import CommonFlags, LoadFlags
from specdec_cli.cli.request_options import LengthFlags, PromptFlags, SamplingFlags
from specdec_cli.cli.settings import configurable, source_of

app = typer.Typer(help="Show the configuration.", no_args_is_help=True)


@app.command()
@flat
def show(
    context: typer.Context,
    load: LoadFlags,
    sampling: SamplingFlags,
    length: LengthFlags,
    text: PromptFlags,
    common: CommonFlags,
) -> None:
    """Every option with its effective value and where that comes from."""
    terminal = Terminal(common)
    rows = [
        (key, context.params[name], source_of(context, name))
        for key, name in configurable(context).items()
        if not _is_alias(context, name)
    ]
    if common.json:
        terminal.data({key: {"value": value, "source": source} for key, value, source in rows})
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("OPTION", "VALUE", "SOURCE"):
        table.add_column(heading, no_wrap=True)
    for key, value, source in rows:
        table.add_row(key, _worded(value), source)
    if not terminal.out.is_terminal:
        terminal.out.width = 200
    terminal.out.print(table, markup=False)


@app.command()
@flat
def path(common: CommonFlags) -> None:
    """The files that are read, the stronger one first."""
    from specdec_cli.app.configuration import LOCAL_FILE, user_file

    terminal = Terminal(common)
    files = [LOCAL_FILE.absolute(), user_file()]
    if common.json:
        terminal.data([{"path": str(file), "exists": file.exists()} for file in files])
        return
    for file in files:
        print(file if file.exists() else f"{file} (not there)")  # noqa: T201


def _is_alias(context: typer.Context, name: str) -> bool:
    return any(p.name == name and getattr(p, "hidden", False) for p in context.command.params)


def _worded(value: object) -> str:
    if value is None or value in ([], (), -1):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
