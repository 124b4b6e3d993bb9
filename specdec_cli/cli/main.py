"""The command `specdec`: its commands, and what happens when one of them fails."""

from __future__ import annotations

import os
import sys
from typing import Annotated, NoReturn

import typer
from typer.exceptions import Abort, TyperException

from specdec_cli import __version__
from specdec_cli.cli import config, failures, models, run, verify
from specdec_cli.cli.declare import flat
from specdec_cli.cli.options import CommonFlags

app = typer.Typer(
    name="specdec",
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("run")(run.run)
app.command("verify")(verify.verify)
app.command("pull")(models.pull)
app.command("list")(models.list_models)
app.add_typer(config.app, name="config")


@app.callback(invoke_without_command=True)
@flat
def root(
    context: typer.Context,
    common: CommonFlags,
    version: Annotated[bool, typer.Option("--version", help="Show versions and exit.")] = False,
) -> None:
    """Faster answers from local GGUF models, and the same answers.

    A small draft model guesses the next tokens, the target model checks them all in one pass,
    and a rule keeps what the target would have said.
    """
    if version:
        print(f"specdec {__version__}")  # noqa: T201
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())  # noqa: T201
        raise typer.Exit
    context.obj = {
        name: value
        for name, value in vars(common).items()
        if (source := context.get_parameter_source(name)) and source.name == "COMMANDLINE"
    }


def main() -> NoReturn:
    """Run the command line; every way it can end has its exit code."""
    sys.exit(_run(sys.argv[1:]))


def _run(arguments: list[str]) -> int:
    as_json = "--json" in arguments or "--jsonl" in arguments
    try:
        code = app(arguments, standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except BrokenPipeError:  # the reader has gone: nothing to say, and nobody to say it to
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return failures.CLOSED_PIPE
    except (KeyboardInterrupt, Abort):
        print("interrupted", file=sys.stderr)  # noqa: T201
        return failures.INTERRUPTED
    except TyperException as error:
        return failures.report(failures.usage_error(error), as_json=as_json)
    except Exception as error:  # a SpecdecError, or a bug
        return failures.report(error, as_json=as_json)
