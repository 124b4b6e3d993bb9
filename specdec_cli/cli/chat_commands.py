"""The commands of a chat: what they are called and what may follow them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from specdec_cli.cli import chat_actions as actions
from specdec_cli.cli import chat_reports as reports
from specdec_cli.cli.chat_input import unquoted
from specdec_cli.cli.chat_state import Chat
from specdec_cli.cli.chat_why import why
from specdec_cli.errors import UsageError


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
    near = [known for known in BY_NAME if name and known.startswith(name.lower())]
    near = near or get_close_matches(name.lower(), BY_NAME, 1)
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


COMMANDS = (
    Command(("help", "?"), "[COMMAND]", "list the commands", _help, "command"),
    Command(("set",), "[NAME [VALUE]]", "show or change a setting", actions.set_, "setting"),
    Command(("show",), "", "models, settings and conversation", reports.show),
    Command(("stats",), "", "this session in numbers", reports.stats),
    Command(("why",), "", "the last guesses that the target refused", why),
    Command(("spec",), "[on|off]", "speculation on or off", actions.spec, ("on", "off")),
    Command(("draft",), "[REF|off]", "load another draft, or none", actions.draft, "model"),
    Command(("model",), "[REF]", "load another target", actions.model, "model"),
    Command(("undo",), "", "take the last question and answer back", actions.undo),
    Command(("retry",), "[SEED]", "answer again, with another seed", actions.retry),
    Command(("edit",), "", "change the last question and ask again", actions.edit),
    Command(("continue",), "", "go on with an answer that was cut off", actions.continue_),
    Command(("read",), "FILE", "put a file before your next message", actions.read, "path"),
    Command(("context",), "", "how full the context is", reports.context),
    Command(("clear",), "", "begin a new conversation", actions.clear),
    Command(("save",), "[[-f] FILE]", "where it is saved, or a copy", actions.save, "path"),
    Command(("load",), "[ID|FILE]", "list chats, or go on with one", actions.load, "conversation"),
    Command(("export",), "md|json [FILE]", "as Markdown or JSON", actions.export, ("md", "json")),
    Command(("copy",), "", "the last answer to the clipboard", actions.copy),
    Command(("color",), "[on|off]", "colour what was drafted", actions.color, ("on", "off")),
    Command(("quit", "exit", "bye"), "", "leave; so does Ctrl-D", actions.quit),
)
BY_NAME = {name: command for command in COMMANDS for name in command.names}
