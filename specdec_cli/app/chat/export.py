"""A conversation for other eyes: Markdown for people, one JSON document for programs.

`/save` writes the format that `/load` reads: `store.to_lines`.
"""

from __future__ import annotations

from specdec_cli.app.chat.conversation import Conversation


def to_markdown(conversation: Conversation) -> str:
    raise NotImplementedError


def to_json(conversation: Conversation) -> str:
    raise NotImplementedError
