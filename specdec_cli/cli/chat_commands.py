"""The commands of a chat: what they are called, what they do, what may follow them."""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from specdec_cli.app.chat import export
from specdec_cli.app.chat.files import read_text_file, write_new_file
from specdec_cli.app.chat.lines import to_lines
from specdec_cli.cli import chat_reports as reports
from specdec_cli.cli.chat_input import unquoted
from specdec_cli.cli.chat_state import Chat
from specdec_cli.cli.models import model_path
from specdec_cli.cli.options import DEFAULT_DRAFT_TOKENS, DrafterKind
from specdec_cli.errors import UsageError

MOST_COPIED = 74_994  # bytes; what xterm takes in one sequence, and others after it


@dataclass(frozen=True, slots=True)
class Command:
    """A word after a slash.

    Attributes:
        usage: what may follow it.
        completes: `path`, `model`, `setting`, `conversation`, or the words that may follow.
    """

    names: tuple[str, ...]
    usage: str
    help: str
    run: Callable[[Chat, str], None]
    completes: str | tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.names[0]


def parse(text: str) -> tuple[Command, str] | str:
    """What was typed: a command with what follows it, or a message.

    Raises:
        UsageError: it looks like a command and is none.
    """
    if (block := unquoted(text)) is not None:
        return block
    typed = text.strip()
    if not typed.startswith("/") or typed.startswith("//"):
        return typed.removeprefix("/") if typed.startswith("//") else text.strip("\n")
    name, *rest = typed[1:].split(maxsplit=1) or [""]
    if found := BY_NAME.get(name.lower()):
        return found, rest[0] if rest else ""
    near = get_close_matches(name.lower(), BY_NAME, 1)
    raise UsageError(
        f"there is no command /{name}; nothing was sent",
        why=f"the nearest is /{near[0]}" if near else "what begins with a slash is a command",
        fix=f"/help lists them; //{name[:20]} sends /{name[:20]}",
    )


def _help(chat: Chat, argument: str) -> None:
    name = argument.strip().lstrip("/").lower()
    if name and name not in BY_NAME:
        parse(f"/{name}")
    reports.commands(chat, [BY_NAME[name]] if name else COMMANDS)


def _set(chat: Chat, argument: str) -> None:
    words = argument.removeprefix("parameter ").strip().replace("=", " ", 1).split(maxsplit=1)
    if not words:
        reports.settings(chat)
        return
    name, value = words[0].lstrip("-"), _bare(words[1]) if len(words) > 1 else None
    if name in ("system", "sys"):
        _set_system(chat, value)
        return
    if value is None:
        reports.setting(chat, name)
        return
    most = chat.session.options.draft_tokens
    chat.flags = chat.setter.change(chat.flags, name, value, most=most)
    chat.apply()
    reports.setting(chat, name)


def _set_system(chat: Chat, text: str | None) -> None:
    if text is not None:
        chat.change(chat.conversation.with_system(text or None))
    reports.system(chat)


def _spec(chat: Chat, argument: str) -> None:
    if argument:
        chat.speculates = _on_or_off("/spec", argument)
        chat.apply()
    chat.terminal.report(f"speculation is {reports.drafter(chat)}")


def _draft(chat: Chat, argument: str) -> None:
    if argument == "off":
        chat.reload(replace(chat.flags.load, no_draft=True, draft_model=None))
    elif argument:
        load = chat.flags.load
        model_path(chat.terminal, argument, offline=chat.offline)
        drafts = load.drafter in (DrafterKind.auto, DrafterKind.model)
        chat.reload(
            replace(
                load,
                draft_model=argument,
                no_draft=False,
                drafter=load.drafter if drafts else DrafterKind.auto,
                draft_tokens=load.guesses or DEFAULT_DRAFT_TOKENS,
                draft_tokens_alias=None,
            )
        )
    chat.terminal.report(f"speculation is {reports.drafter(chat)}")


def _model(chat: Chat, argument: str) -> None:
    if argument:
        model_path(chat.terminal, argument, offline=chat.offline)
        chat.reload(replace(chat.flags.load, model=argument, draft_model=None))
    reports.models(chat)


def _undo(chat: Chat, _argument: str) -> None:
    question = chat.conversation.question
    if question is None:
        raise _nothing_yet("/undo")
    chat.change(chat.conversation.undo())
    chat.terminal.report(f"taken back: {reports.shortened(question)}")


def _retry(chat: Chat, argument: str) -> None:
    seed = None
    if argument:
        seed = chat.setter.change(chat.flags, "seed", argument, most=64).seed
    chat.answer(chat.talk.retry(seed))


def _continue(chat: Chat, _argument: str) -> None:
    chat.answer(chat.talk.go_on())


def _edit(chat: Chat, _argument: str) -> None:
    question = chat.conversation.question
    if question is None:
        raise _nothing_yet("/edit")
    if not chat.interactive:
        raise UsageError("/edit needs a terminal", why="there is no line to edit", fix="use /undo")
    chat.draft, chat.editing = question, True


def _save(chat: Chat, argument: str) -> None:
    force, name = _forced(argument)
    if name:
        path = write_new_file(Path(name), to_lines(chat.conversation), overwrite=force)
        chat.terminal.report(f"a copy is in {path}; /load {path} reads it")
    elif chat.store is None:
        raise UsageError(
            "this chat is not saved", why="it was started with --no-save", fix="/save FILE"
        )
    elif not chat.conversation.turns:
        raise _nothing_yet("/save")
    else:
        path = chat.store.save(chat.conversation)
        chat.terminal.report(f"saved after every turn as {chat.conversation.id}, in {path}")


def _load(chat: Chat, argument: str) -> None:
    if not argument:
        reports.conversations(chat.terminal.err, chat.saved.list())
        return
    loaded = chat.saved.load(argument)
    chat.change(loaded)
    reports.conversation(chat)


def _clear(chat: Chat, _argument: str) -> None:
    chat.change(chat.conversation.cleared())
    chat.attached.clear()
    chat.terminal.report("a new conversation; the old one is kept where it was saved")


def _read(chat: Chat, argument: str) -> None:
    if not argument:
        raise UsageError("/read needs a file", why="none was named", fix="/read notes.txt")
    text = read_text_file(Path(argument))
    tokens = len(chat.session.model.vocabulary.tokenize(text, special=False))
    if tokens >= chat.session.context_size:
        raise UsageError(
            f"{argument} does not fit the context",
            why=f"it has {tokens:,} tokens, the context {chat.session.context_size:,}",
            fix=f"read a smaller part, or start with -c {tokens + 1024}",
        )
    chat.attached.append((Path(argument).name, text))
    chat.terminal.report(f"{argument}: {tokens:,} tokens, to go before your next message")


def _color(chat: Chat, argument: str) -> None:
    if argument:
        chat.replies.colours = _on_or_off("/color", argument)
        if chat.replies.colours and not chat.terminal.colour():
            raise UsageError(
                "this terminal shows no colours",
                why="--color never, or TERM=dumb",
                fix="--color always",
            )
    chat.terminal.report(f"colours are {'on' if chat.replies.colours else 'off'}")


def _export(chat: Chat, argument: str) -> None:
    force, argument = _forced(argument)
    form, _, name = argument.partition(" ")
    forms = {"md": export.to_markdown, "json": export.to_json}
    if form not in forms:
        raise UsageError(
            f"there is no form {form!r}" if form else "/export needs a form",
            why="it is md or json",
            fix="/export md",
        )
    path = Path(name.strip() or f"{chat.conversation.id}.{form}")
    path = write_new_file(path, forms[form](chat.conversation), overwrite=force)
    chat.terminal.report(f"written to {path}")


def _copy(chat: Chat, _argument: str) -> None:
    answer = chat.conversation.answer
    if answer is None:
        raise _nothing_yet("/copy")
    data = answer.content.encode()
    if len(data) > MOST_COPIED:
        raise UsageError(
            "the answer is too long to copy",
            why=f"it has {len(data):,} bytes, terminals take {MOST_COPIED:,}",
            fix="/export md",
        )
    if not sys.stdout.isatty():
        raise UsageError("/copy needs a terminal", why="it does the copying", fix="/export md")
    sys.stdout.write(f"\x1b]52;c;{base64.b64encode(data).decode()}\x07")
    sys.stdout.flush()
    chat.terminal.report(
        f"{len(answer.content):,} characters sent to the clipboard by OSC 52; where nothing "
        "arrives, the terminal does not take that (tmux: set -g set-clipboard on)"
    )


def _quit(chat: Chat, _argument: str) -> None:
    chat.ended = True


def _on_or_off(command: str, word: str) -> bool:
    if word not in ("on", "off"):
        raise UsageError(f"{command} cannot be {word!r}", why="on or off", fix=f"{command} on")
    return word == "on"


def _forced(argument: str) -> tuple[bool, str]:
    """A leading -f allows to write over a file."""
    first, _, rest = argument.partition(" ")
    return (True, rest.strip()) if first == "-f" else (False, argument)


def _bare(value: str) -> str:
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value


def _nothing_yet(command: str) -> UsageError:
    return UsageError(f"{command} has nothing to work on", why="nothing was said", fix="ask")


COMMANDS = (
    Command(("help", "?"), "[COMMAND]", "what there is", _help, "command"),
    Command(("set",), "[NAME [VALUE]]", "show or change a setting", _set, "setting"),
    Command(("show",), "", "models, settings and conversation", reports.show),
    Command(("stats",), "", "this session in numbers", reports.stats),
    Command(("why",), "", "the last guesses that the target refused", reports.why),
    Command(("spec",), "[on|off]", "speculation on or off", _spec, ("on", "off")),
    Command(("draft",), "[REF|off]", "another draft, or none", _draft, "model"),
    Command(("model",), "[REF]", "another target, the same conversation", _model, "model"),
    Command(("undo",), "", "take the last question and answer back", _undo),
    Command(("retry",), "[SEED]", "answer again, with another seed", _retry),
    Command(("edit",), "", "change the last question and ask again", _edit),
    Command(("continue",), "", "go on with an answer that was cut off", _continue),
    Command(("read",), "FILE", "put a file before your next message", _read, "path"),
    Command(("context",), "", "how full the context is", reports.context),
    Command(("clear",), "", "begin a new conversation", _clear),
    Command(("save",), "[[-f] FILE]", "where it is saved, or a copy", _save, "path"),
    Command(("load",), "[ID|FILE]", "list conversations, or go on with one", _load, "conversation"),
    Command(("export",), "md|json [FILE]", "write it for other eyes", _export, ("md", "json")),
    Command(("copy",), "", "the last answer to the clipboard", _copy),
    Command(("color",), "[on|off]", "colour what was drafted", _color, ("on", "off")),
    Command(("quit", "exit", "bye"), "", "leave; so does Ctrl-D", _quit),
)
BY_NAME = {name: command for command in COMMANDS for name in command.names}
