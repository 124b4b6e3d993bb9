"""The command `specdec`: its commands, and what happens when one of them fails."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
from typer.exceptions import TyperException

from specdec_cli import __version__
from specdec_cli.cli import (
    bench,
    chat,
    config,
    draft,
    failures,
    memory,
    models,
    run,
    tune,
    verify,
)
from specdec_cli.cli.declare import flat
from specdec_cli.cli.options import CommonFlags
from specdec_cli.cli.settings import pass_on

app = typer.Typer(
    name="specdec",
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("run")(run.run)
app.command("chat")(chat.chat)
app.command("verify")(verify.verify)
app.command("tune")(tune.tune)
app.command("pull")(models.pull)
app.command("list")(models.list_models)
app.add_typer(bench.app, name="bench")
app.add_typer(draft.app, name="draft")
app.add_typer(memory.app, name="memory")
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
        from specdec_cli.engine.llama.library import versions

        parts = {"specdec": __version__, **versions()}
        print("\n".join(f"{name} {version}" for name, version in parts.items()))  # noqa: T201
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())  # noqa: T201
        raise typer.Exit
    pass_on(context, common)


def run_command(arguments: list[str]) -> int:
    """Run the command line; every way it can end has its exit code."""
    try:
        code = app(arguments, standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except SystemExit as ended:  # typer turns a closed pipe into this
        if not _pipe_closed(ended.__context__):
            raise
    except BrokenPipeError:
        pass
    except TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error)  # noqa: T201
            return 0
        return failures.report(failures.usage_error(error, arguments), as_json=_as_json(arguments))
    except Exception as error:  # a SpecdecError, or a bug
        if failures.is_full_disk(error):
            _give_up_stdout()
        if not _pipe_closed(error):
            return failures.report(error, as_json=_as_json(arguments))
    # The reader has gone: there is nothing to say, and nobody to say it to.
    _give_up_stdout()
    return failures.CLOSED_PIPE


def _give_up_stdout() -> None:
    """What is still in its buffer goes nowhere, and no error comes of it at the very end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _pipe_closed(error: BaseException | None) -> bool:
    return isinstance(error, BrokenPipeError)


def _as_json(arguments: list[str]) -> bool:
    """Was a JSON document asked for? Known even where the command line could not be parsed."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return bool({"--json", "--jsonl"} & set(options)) or os.environ.get("SPECDEC_JSON") in (
        "1", "true", "yes", "on",
    )  # fmt: skip
