"""What the commands of a chat do."""

from __future__ import annotations

import base64
import sys
from dataclasses import replace
from pathlib import Path

from specdec_cli.app.chat.export import to_json, to_markdown
from specdec_cli.app.chat.files import read_text_file, write_new_file
from specdec_cli.app.chat.lines import to_lines
from specdec_cli.cli import chat_reports as reports
from specdec_cli.cli.chat_state import Chat
from specdec_cli.cli.models import model_path
from specdec_cli.cli.options import AUTO, DrafterKind
from specdec_cli.errors import UsageError

MOST_COPIED = 74_994  # bytes; what xterm takes in one sequence, and others after it


def set_(chat: Chat, argument: str) -> None:
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


def spec(chat: Chat, argument: str) -> None:
    if argument:
        chat.speculates = _on_or_off("/spec", argument)
        chat.apply()
    chat.terminal.report(f"speculation: {reports.drafter(chat)}")


def draft(chat: Chat, argument: str) -> None:
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
                draft_tokens=AUTO if load.guesses == 0 else load.length,
                draft_tokens_alias=None,
            )
        )
    chat.terminal.report(f"speculation: {reports.drafter(chat)}")


def model(chat: Chat, argument: str) -> None:
    if argument:
        model_path(chat.terminal, argument, offline=chat.offline)
        chat.reload(replace(chat.flags.load, model=argument, draft_model=None))
    reports.models(chat)


def undo(chat: Chat, _argument: str) -> None:
    question = chat.conversation.question
    if question is None:
        raise _nothing_yet("/undo")
    chat.change(chat.conversation.undo())
    chat.terminal.report(f"taken back: {reports.shortened(question)}")


def retry(chat: Chat, argument: str) -> None:
    seed = None
    if argument:
        seed = chat.setter.change(chat.flags, "seed", argument, most=64).seed
    chat.answer(chat.talk.retry(seed))


def continue_(chat: Chat, _argument: str) -> None:
    chat.answer(chat.talk.go_on())


def edit(chat: Chat, _argument: str) -> None:
    question = chat.conversation.question
    if question is None:
        raise _nothing_yet("/edit")
    if not chat.interactive:
        raise UsageError("/edit needs a terminal", why="there is no line to edit", fix="use /undo")
    chat.draft, chat.editing = question, True


def save(chat: Chat, argument: str) -> None:
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


def load(chat: Chat, argument: str) -> None:
    if not argument:
        reports.conversations(chat.terminal.err, chat.saved.list())
        return
    loaded = chat.saved.load(argument)
    chat.change(loaded)
    reports.conversation(chat)


def clear(chat: Chat, _argument: str) -> None:
    chat.change(chat.conversation.cleared())
    chat.attached.clear()
    old = "was not saved" if chat.store is None else "is kept: /load lists them all"
    chat.terminal.report(f"a new conversation; the old one {old}")


def read(chat: Chat, argument: str) -> None:
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


def color(chat: Chat, argument: str) -> None:
    if argument:
        chat.replies.colours = _on_or_off("/color", argument)
        if chat.replies.colours and not chat.terminal.colour():
            raise UsageError(
                "this terminal shows no colours",
                why="--color never, or TERM=dumb",
                fix="--color always",
            )
    chat.terminal.report(f"colours are {'on' if chat.replies.colours else 'off'}")


def export(chat: Chat, argument: str) -> None:
    force, argument = _forced(argument)
    form, _, name = argument.partition(" ")
    forms = {"md": to_markdown, "json": to_json}
    if form not in forms:
        raise UsageError(
            f"there is no form {form!r}" if form else "/export needs a form",
            why="it is md or json",
            fix="/export md",
        )
    path = Path(name.strip() or f"{chat.conversation.id}.{form}")
    path = write_new_file(path, forms[form](chat.conversation), overwrite=force)
    chat.terminal.report(f"written to {path}")


def copy(chat: Chat, _argument: str) -> None:
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


def quit(chat: Chat, _argument: str) -> None:
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
