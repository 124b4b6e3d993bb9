"""`specdec chat`: questions and answers in turn."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from specdec_cli.cli import failures
from specdec_cli.cli.chat_settings import ChatFlags, Flags, Setter
from specdec_cli.cli.console import Terminal
from specdec_cli.cli.declare import flat
from specdec_cli.cli.loading import check_together
from specdec_cli.cli.options import CommonFlags, LoadFlags, option
from specdec_cli.cli.request_options import EndFlags, PromptFlags, SamplingFlags, SystemFlags
from specdec_cli.cli.settings import source_of
from specdec_cli.errors import SpecdecError, UsageError

if TYPE_CHECKING:
    from specdec_cli.app.chat.conversation import Conversation
    from specdec_cli.app.chat.store import Store
    from specdec_cli.cli.chat_input import Reader
    from specdec_cli.cli.chat_state import Chat

HOW_TO_LEAVE = "Ctrl-D or /quit leaves; Ctrl-C stops an answer"
NOT_EDITED = "the question stays as it was"


@flat
def chat(
    context: typer.Context,
    *,
    go_on: Annotated[
        bool,
        option("--continue", env=False, panel="Chat", help="Go on with the last conversation."),
    ] = False,
    resume: Annotated[
        str | None,
        option("--resume", metavar="ID", env=False, panel="Chat",
               help="Go on with a conversation; the beginning of its ID will do, or a file."),
    ] = None,
    listed: Annotated[
        bool, option("--list", env=False, panel="Chat", help="List the conversations and leave.")
    ] = False,
    chats: ChatFlags,
    text: SystemFlags,
    load: LoadFlags,
    sampling: SamplingFlags,
    ends: EndFlags,
    common: CommonFlags,
) -> None:  # fmt: skip
    """Chat in the terminal, or with what stands on standard input, a message a line.

    `/help` lists the commands, Ctrl-C stops an answer, Ctrl-D leaves. Conversations are saved
    after every turn.
    """
    terminal = Terminal(common)
    if listed:
        _list(terminal)
        return
    _check(common, go_on=go_on, resume=resume)
    check_together(load, sampling.options(), PromptFlags(), [load.accept])
    flags = Flags(load, sampling, ends, chats, sampling.chosen_seed())

    from specdec_cli.app.chat.conversation import Conversation
    from specdec_cli.app.chat.store import Store

    store = Store()
    conversation, resumed = Conversation(load.model), False
    if go_on or resume is not None:
        conversation = store.latest() if resume is None else store.load(resume)
        resumed = True
        if given(context, "model"):
            conversation = conversation.with_model(load.model)
        flags = replace(flags, load=replace(load, model=conversation.model))
    if text.system is not None and (not resumed or given(context, "system")):
        conversation = conversation.with_system(text.system)
    if chats.no_save:
        store.release()
    try:
        _run(terminal, common, Setter(context, flags), flags, conversation, store)
    finally:
        store.release()


def given(context: typer.Context, name: str) -> bool:
    """Was the option on the command line? A conversation stands above a configuration."""
    return source_of(context, name) == "command line"


def _run(
    terminal: Terminal,
    common: CommonFlags,
    setter: Setter,
    flags: Flags,
    conversation: Conversation,
    store: Store,
) -> None:
    import sys

    from specdec_cli.cli import chat_reports
    from specdec_cli.cli.chat_input import LineReader, Terminated, unechoed
    from specdec_cli.cli.chat_state import Chat

    interactive = sys.stdin is not None and sys.stdin.isatty()
    talked = bool(conversation.turns)
    running = Chat(
        terminal, common, setter, flags, conversation, store=store, interactive=interactive
    )
    try:
        if talked:
            chat_reports.conversation(running)
        if interactive:
            chat_reports.greet(running)
        reader: Reader = _prompt(running) if interactive else LineReader()
        with unechoed():
            while not running.ended:
                _turn(running, reader)
    except Terminated:
        raise typer.Exit(failures.TERMINATED) from None
    finally:
        running.close()


def _turn(chat: Chat, reader: Reader) -> None:
    """One line of input and what comes of it; what goes wrong is said, and the chat goes on."""
    from specdec_cli.cli.chat_commands import parse

    draft, chat.draft = chat.draft, ""
    try:
        typed = reader.read(draft)
    except EOFError:
        chat.ended = True
        return
    except KeyboardInterrupt:
        if not chat.interactive:
            raise typer.Exit(failures.INTERRUPTED) from None
        chat.terminal.report(NOT_EDITED if chat.editing else HOW_TO_LEAVE)
        chat.editing = False
        return
    if not typed.strip():
        if chat.editing:
            chat.terminal.report(NOT_EDITED)
        chat.editing = False
        return
    try:
        wanted = parse(typed)
        if isinstance(wanted, str):
            chat.send(wanted)
        else:
            command, argument = wanted
            chat.editing = False  # or a later message would take the place of the last one
            command.run(chat, argument)
    except SpecdecError as error:
        failures.report(error, as_json=False)
    except KeyboardInterrupt:
        chat.terminal.report("interrupted")
    if chat.interactive and not chat.ended:
        chat.terminal.report("")


def _prompt(chat: Chat) -> Reader:
    from specdec_cli.cli.chat_completion import ChatCompleter
    from specdec_cli.cli.chat_input import PromptReader
    from specdec_cli.cli.chat_reports import bar, history_file

    return PromptReader(
        history=None if chat.flags.chat.no_save else history_file(),
        completer=ChatCompleter(chat),
        bar=lambda: bar(chat, chat.terminal.err.width),
        colours=not chat.terminal.err.no_color,
    )


def _list(terminal: Terminal) -> None:
    from specdec_cli.app.chat.store import Store
    from specdec_cli.cli import chat_reports

    entries = Store().list()
    if terminal.json:
        terminal.data(chat_reports.as_rows(entries))
    else:
        chat_reports.conversations(terminal.out, entries)


def _check(common: CommonFlags, *, go_on: bool, resume: str | None) -> None:
    if go_on and resume is not None:
        raise UsageError(
            "--continue and --resume do not go together",
            why="each names a conversation",
            fix="give one of them",
        )
    if common.json:
        raise UsageError(
            "a chat is no JSON document",
            why="--json goes with --list only",
            fix="use specdec run --json, or /export json in the chat",
        )
