"""A conversation for other eyes: Markdown for people, one JSON document for programs.

`/save` writes what `/load` reads: `lines.to_lines`.
"""

from __future__ import annotations

import json
import re
from typing import Any

from specdec_cli.app.chat.conversation import Conversation, Message

HEADINGS = {"system": "System", "user": "You", "assistant": "Assistant"}


def to_markdown(conversation: Conversation) -> str:
    """Headings for speakers; what they said as it is, for it often is Markdown itself."""
    parts = [f"# Chat with {conversation.model}\n\n{conversation.created}\n"]
    parts += [_section(message) for message in conversation.messages]
    return "\n".join(parts)


def to_json(conversation: Conversation) -> str:
    """One document: id, created, model and messages, the last with their details."""
    messages = []
    for message in conversation.messages:
        entry: dict[str, Any] = {"role": message.role, "content": message.content}
        if message.role == "assistant":
            entry |= {"partial": message.partial, "details": message.details}
        messages.append(entry)
    document = {
        "id": conversation.id,
        "created": conversation.created,
        "model": conversation.model,
        "messages": messages,
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def _section(message: Message) -> str:
    text = message.content.strip("\n")
    if len(re.findall(r"^ {0,3}```", text, re.MULTILINE)) % 2:
        text += "\n```"  # cut off in a code block, which would swallow the rest of the page
    note = "\n\n*(cut off)*" if message.partial else ""
    return f"## {HEADINGS[message.role]}\n\n{text}{note}\n"
