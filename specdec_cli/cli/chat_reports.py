"""What the commands of a chat show: on stderr, for stdout has the answers and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platformdirs import user_state_path
from rich.console import Console
from rich.table import Table
from rich.text import Text

from specdec_cli.app.chat.conversation import Message
from specdec_cli.app.chat.store import Entry
from specdec_cli.app.session import SUFFIX
from specdec_cli.cli.console import harmless
from specdec_cli.cli.summary import folded

if TYPE_CHECKING:
    from specdec_cli.cli.chat_commands import Command
    from specdec_cli.cli.chat_state import Chat

ID_WIDTH, WIDE = 20, 70
SHORT = 60  # characters of a question or file name
KEYS = [
    "Enter sends",
    "Alt-Enter or Ctrl-J: a new line",
    '"""a block""": many lines',
    "Tab completes",
    "Ctrl-R searches what was typed",
    "Ctrl-X Ctrl-E opens $EDITOR",
    "Ctrl-C stops an answer",
    "Ctrl-D leaves",
    "//x sends /x",
]


def commands(chat: Chat, chosen: Sequence[Command]) -> None:
    table = Table.grid(padding=(0, 2))
    for command in chosen:
        names = " ".join(f"/{name}" for name in command.names)
        table.add_row(Text(f"{names} {command.usage}"), Text(command.help))
    chat.terminal.err.print(table)
    if len(chosen) > 1:
        chat.terminal.report("\n" + folded(KEYS, chat.terminal.err.width))


def settings(chat: Chat) -> None:
    table = Table.grid(padding=(0, 2))
    for name in chat.setter.names:
        table.add_row(Text(name), Text(_value(chat, name)))
    table.add_row(Text("system"), Text(shortened(chat.conversation.system or "-")))
    chat.terminal.err.print(table)


def setting(chat: Chat, name: str) -> None:
    parameter = chat.setter.parameter(name)
    chat.terminal.report(f"{name} is {_value(chat, parameter.opts[0].lstrip('-'))}")


def system(chat: Chat) -> None:
    chat.terminal.report(f"system text: {chat.conversation.system or 'none'}")


def show(chat: Chat, _argument: str) -> None:
    models(chat)
    conversation = chat.conversation
    unsaved = " (not saved)" if chat.store is None else ""
    chat.terminal.report(f"conversation {conversation.id}{unsaved}")
    context(chat, "")
    system(chat)
    changed = [f"{name} {_value(chat, name)}" for name in chat.setter.changed(chat.flags)]
    parts = [f"settings: {changed[0]}", *changed[1:], "the rest as built in"]  # a seed at least
    chat.terminal.report(folded(parts, chat.terminal.err.width))


def models(chat: Chat) -> None:
    session = chat.session
    name, path = chat.flags.load.model, str(session.options.target)
    chat.terminal.report(f"model {name}" + (f" ({path})" if path != name else ""))
    for draft in session.drafts:
        chat.terminal.report(f"draft {draft.model.path}")
    chat.terminal.report(f"speculation: {drafter(chat)}")


def drafter(chat: Chat) -> str:
    """What speculates in the next answer, or why nothing does."""
    load = chat.flags.load
    if not chat.speculates:
        return "off (/spec off)"
    if load.plain:
        return f"off ({load.plain})"
    sources = chat.session.sources_of(load.drafter.value)
    if load.guesses is not None:  # then one source guesses, and a draft before the text itself
        draft = chat.session.draft(load.drafter.value)
        sources = sources if load.drafter == SUFFIX else (draft.name,) if draft else ()
    if not sources:
        why = chat.session.options.left_out or "no draft model"
        return f"off ({why}; /draft REF loads one)"
    return f"{', '.join(sources)}, k {load.length}"


def context(chat: Chat, _argument: str) -> None:
    used, size = chat.talk.context_use()
    parts = [f"{used:,} of {size:,} tokens ({used / size:.0%})", turns(chat.conversation.turns)]
    if dropped := chat.conversation.dropped:
        parts.append(f"the oldest {turns(dropped)} not shown to the model")
    if chat.attached:
        parts.append("to come: " + ", ".join(name for name, _ in chat.attached))
    if chat.cache is not None:
        parts.append(f"prompt cache {chat.cache.size / 1e6:,.0f} MB on disk")
    chat.terminal.report(folded(parts, chat.terminal.err.width))


def stats(chat: Chat, _argument: str) -> None:
    totals = chat.totals
    if not totals.answers:
        chat.terminal.report("no answer yet")
        return
    answers = "1 answer" if totals.answers == 1 else f"{totals.answers} answers"
    parts = [answers, f"{totals.tokens:,} tokens in {totals.passes:,} passes"]
    if totals.acceptance_rate is not None:
        rate = f"({totals.acceptance_rate:.0%})"
        parts.append(f"{totals.accepted:,}/{totals.drafted:,} drafts accepted {rate}")
    if totals.tokens_per_pass is not None:
        parts.append(f"{totals.tokens_per_pass:.2f} tokens per pass")
    if totals.tokens_per_second is not None:
        parts.append(f"{totals.tokens_per_second:.1f} tok/s")
    parts.append(f"prompts {totals.prompt_tokens:,} tokens, cached {totals.cached_tokens:,}")
    parts.append(_saved(totals.speedup, totals.saved_seconds))
    chat.terminal.report(folded(parts, chat.terminal.err.width))


def _saved(speedup: float | None, seconds: float | None) -> str:
    if speedup is None or seconds is None:
        return "plain speed was not measured"
    if seconds > -0.05:
        return f"≈{speedup:.2f}x plain, {abs(seconds):.1f} s saved"
    return f"≈{speedup:.2f}x plain: that would have been {-seconds:.1f} s faster (/spec off)"


def greet(chat: Chat) -> None:
    parts = [named(chat.flags.load.model)]
    parts += [f"draft {draft.model.path.stem}" for draft in chat.session.drafts]
    parts += [f"speculation: {drafter(chat)}", "/help lists the commands"]
    chat.terminal.remark(folded(parts, chat.terminal.err.width))


def conversation(chat: Chat) -> None:
    """Where a person is, after a conversation was taken up again."""
    it = chat.conversation
    chat.terminal.report(f"conversation {it.id}, {turns(it.turns)}, with {named(it.model)}")
    if it.model != chat.flags.load.model:
        chat.terminal.notice(f"it goes on with {chat.flags.load.model}; /model {it.model} changes")
    for message in it.messages[-2:]:
        if message.role != "system":
            chat.terminal.report(_said(message))


def _said(message: Message) -> str:
    return f">>> {message.content}" if message.role == "user" else message.content


def conversations(console: Console, entries: Sequence[Entry]) -> None:
    if not console.is_terminal:  # a pipe has no width to fit into
        console.width = 200
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading, least in (("ID", ID_WIDTH), ("TURNS", 5), ("MODEL", 12), ("FIRST QUESTION", 1)):
        if console.width >= WIDE or heading != "MODEL":
            table.add_column(heading, no_wrap=True, min_width=least)
    for entry in entries:
        title = entry.title or f"cannot be read: {entry.problem}"
        model = [shortened(named(entry.model), 24)] if console.width >= WIDE else []
        row = (entry.id, str(entry.turns), *model, title)
        table.add_row(*(Text(harmless(cell)) for cell in row))
    console.print(table if entries else "no conversation has been saved")


def as_rows(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """The list of conversations for programs."""
    return [
        {
            "id": entry.id, "path": str(entry.path), "model": entry.model, "turns": entry.turns,
            "title": entry.title, "changed": entry.changed, "problem": entry.problem,
        }
        for entry in entries
    ]  # fmt: skip


def bar(chat: Chat, width: int) -> str:
    """The bottom line while a person types; the last parts go first where it is narrow."""
    used, size = chat.talk.context_use()
    name = shortened(named(chat.flags.load.model), max(8, width // 3))
    parts = [name, drafter(chat).partition(" (")[0], f"{used:,}/{size:,}"]
    if chat.last is not None and chat.last.answer.statistics.drafted:
        parts.append(f"accepted {chat.last.answer.statistics.acceptance_rate:.0%}")
        if chat.talk.speedup is not None:
            parts.append(f"≈{chat.talk.speedup:.2f}x")
    parts += [f"+ {name}" for name, _ in chat.attached]
    return folded(parts, width - 1).partition("\n")[0][: width - 1]


def history_file() -> Path:
    return user_state_path("specdec") / "history"


def turns(count: int) -> str:
    return "1 turn" if count == 1 else f"{count} turns"


def named(reference: str) -> str:
    """A model as a person calls it: of a path, the end."""
    return Path(reference).stem if reference.endswith(".gguf") else reference


def shortened(text: str, length: int = SHORT) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def _value(chat: Chat, name: str) -> str:
    value = chat.flags.values()[str(chat.setter.parameter(name).name)]
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None or value in ([], ()):
        return "-"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
