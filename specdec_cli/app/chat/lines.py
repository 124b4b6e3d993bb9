"""The format of a conversation's file: JSON lines, a header and then one line a message."""

from __future__ import annotations

import json
from typing import Any

from specdec_cli.app.chat.conversation import Conversation, Message, Role, clean

FORMAT = "specdec-chat"
VERSION = 1
ROLES: dict[Any, Role] = {"system": "system", "user": "user", "assistant": "assistant"}
FOLLOWS: dict[Role | None, tuple[Role, ...]] = {
    None: ("system", "user"),
    "system": ("user",),
    "user": ("assistant",),
    "assistant": ("user",),
}


class NotAConversation(ValueError):
    """In words, what is wrong and where."""


class NewerVersion(ValueError):
    """Written by a later specdec."""


def to_lines(conversation: Conversation) -> str:
    header: dict[str, Any] = {
        "format": f"{FORMAT}/{VERSION}",
        "id": conversation.id,
        "created": conversation.created,
        "model": conversation.model,
    }
    if conversation.dropped:
        header |= {"dropped": conversation.dropped}
    return "".join(
        json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n"
        for line in (header, *(_as_dict(message) for message in conversation.messages))
    )


def from_lines(data: bytes) -> Conversation:
    """Read a file's content.

    Raises:
        NotAConversation: anything in it that `to_lines` would not have written.
        NewerVersion: the header says so.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotAConversation(f"byte {error.start} is not UTF-8") from error
    first, *rest = text.split("\n")  # not splitlines: U+2028 may stand in a text
    header = _header(_parse(first, 1))
    messages: list[Message] = []
    for number, line in enumerate(rest, 2):
        if line.strip():
            messages.append(_message(_parse(line, number), number, messages))
    conversation = Conversation(header["model"], header["id"], header["created"], tuple(messages))
    dropped = header.get("dropped", 0)
    if not isinstance(dropped, int) or not 0 <= dropped <= max(0, conversation.turns - 1):
        raise NotAConversation("line 1: `dropped` is no number of turns that it has")
    return conversation.dropping(dropped)


def _as_dict(message: Message) -> dict[str, Any]:
    line: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.partial:
        line["partial"] = True
    if message.details is not None:
        line["details"] = dict(message.details)
    return line


def _parse(line: str, number: int) -> dict[str, Any]:
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise NotAConversation(f"line {number} is not JSON") from error
    if not isinstance(parsed, dict):
        raise NotAConversation(f"line {number} is not a JSON object")
    return parsed


def _header(line: dict[str, Any]) -> dict[str, Any]:
    name, _, version = str(line.get("format", "")).partition("/")
    if name != FORMAT or not version.isdecimal():
        raise NotAConversation(f"line 1 has no format {FORMAT}/{VERSION}")
    if int(version) > VERSION:
        raise NewerVersion(f"its format is {FORMAT}/{version}, known is {FORMAT}/{VERSION}")
    for key in ("id", "created", "model"):
        if not isinstance(line.get(key), str) or not line[key]:
            raise NotAConversation(f"line 1 has no {key}")
    return line


def _message(line: dict[str, Any], number: int, before: list[Message]) -> Message:
    role, content = line.get("role"), line.get("content")
    partial, details = line.get("partial", False), line.get("details")
    if not isinstance(role, str) or role not in ROLES:
        raise NotAConversation(f"line {number} has no role system, user or assistant")
    if role not in FOLLOWS[before[-1].role if before else None]:
        raise NotAConversation(f"line {number} is out of turn: {role}")
    if not isinstance(content, str) or content != clean(content):
        raise NotAConversation(f"line {number} has no text named content")
    if not isinstance(partial, bool) or not isinstance(details, dict | None):
        raise NotAConversation(f"line {number} has a partial or details of a wrong kind")
    return Message(ROLES[role], content, partial, details)
