"""A chat on a terminal: what is typed, and what each turn did."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from command import environment
from screen import Screen

READY = "\x1b[?2004h"  # written when a line of input begins: pastes are to be marked
KEYS = {"newline": "\x1b\r", "end": "\x04", "search": "\x12", "editor": "\x18\x05"}

RECORDER = """
import json, sys
from specdec_cli.cli import chat_reply

log, show = sys.argv.pop(1), chat_reply.Replies.show

def recorded(events):
    readings = {}
    for event in events:
        if isinstance(event, chat_reply.Reading):
            readings[event.model] = [event.tokens, event.cached]
        if isinstance(event, chat_reply.Answer):
            turn = {"tokens": event.tokens, "prompt": event.prompt_tokens,
                    "cached": event.cached_tokens, "finish": event.finish, "readings": readings}
            with open(log, "a") as file:
                file.write(json.dumps(turn) + "\\n")
        yield event

chat_reply.Replies.show = lambda self, events: show(self, recorded(events))
from specdec_cli.__main__ import main
main()
"""


@dataclass(frozen=True)
class Turn:
    tokens: list[int]
    prompt: int  # tokens
    cached: int
    finish: str
    readings: dict[str, list[int]]  # model -> tokens of the prompt, cached


class ChatScreen(Screen):
    """`specdec chat`, with a record of every turn beside it."""

    def __init__(self, *arguments: object, log: Path, **options: Any) -> None:
        self._log = log
        program = [sys.executable, "-c", RECORDER, str(log), "chat", *map(str, arguments)]
        super().__init__(program=program, **options)
        self.wait_for(READY)

    def enter(self, line: str) -> None:
        """Type a line, and wait until the next one can be typed."""
        self.type(line + "\r")
        self.wait_for(READY)

    def ask(self, line: str) -> Turn:
        self.enter(line)
        return self.turns[-1]

    def leave(self) -> int:
        self.type(KEYS["end"])
        return self.end()

    @property
    def turns(self) -> list[Turn]:
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        return [Turn(**json.loads(line)) for line in lines]


def conversations() -> list[Path]:
    """The files of this test's conversations, the oldest first."""
    directory = Path(environment()["HOME"]) / ".local/share/specdec/conversations"
    return sorted(directory.glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns)


def messages(path: Path) -> list[dict[str, Any]]:
    _, *lines = map(json.loads, path.read_text().splitlines())
    return lines
