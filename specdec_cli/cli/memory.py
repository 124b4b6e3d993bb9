"""`specdec memory`: the earlier answers that `--memory` keeps."""

from __future__ import annotations

import typer

from specdec_cli.cli.console import Terminal
from specdec_cli.cli.declare import flat
from specdec_cli.cli.models import human_size
from specdec_cli.cli.options import CommonFlags
from specdec_cli.errors import SpecdecError

app = typer.Typer(
    help="Show or delete the earlier answers that `--memory` keeps.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@app.command()
@flat
def show(common: CommonFlags) -> None:
    """How much is kept, and where. The answers are token ids, a file for each vocabulary."""
    from specdec_cli.app.memory import directory, kept

    terminal = Terminal(common)
    found = list(kept())
    if common.json:
        terminal.data(
            [
                {
                    "path": str(entry.path), "answers": entry.answers, "tokens": entry.tokens,
                    "size": entry.size,
                }
                for entry in found
            ]
        )  # fmt: skip
        return
    for entry in found:
        answers = "1 answer" if entry.answers == 1 else f"{entry.answers} answers"
        size = human_size(entry.size)
        terminal.line(f"{answers}, {entry.tokens} tokens, {size}: {entry.path}")
    if not found:
        terminal.line(f"nothing is kept in {directory()}")


@app.command()
@flat
def clear(common: CommonFlags) -> None:
    """Delete all of it."""
    from specdec_cli.app.memory import clear as delete
    from specdec_cli.app.memory import directory

    terminal = Terminal(common)
    try:
        deleted = delete()
    except OSError as error:
        raise SpecdecError(
            "the memory cannot be deleted",
            why=error.strerror or str(error),
            fix=f"check the permissions of {directory()}",
        ) from error
    if common.json:
        terminal.data({"deleted": deleted})
    else:
        terminal.remark("deleted" if deleted else "there was nothing to delete")
