"""A conversation: messages without any template, and the ways in which a person changes it.

Every change gives a new `Conversation`, so that the old one is still there if the change fails.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """What somebody said.

    Attributes:
        partial: an answer that was cut off, by Ctrl-C or a limit, and can be gone on with.
        details: of an answer, its parameters and statistics; fit for JSON.
    """

    role: Role
    content: str
    partial: bool = False
    details: Mapping[str, Any] | None = None


def new_id() -> str:
    """The minute and four random digits: sorts by age and is short enough to type."""
    return f"{datetime.now().astimezone():%Y-%m-%d-%H%M}-{secrets.token_hex(2)}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True)
class Conversation:
    """A system text, if there is one, then questions and answers in turn.

    A question without an answer stands at the end at most, and the next question replaces it:
    many templates refuse two questions in a row.

    Attributes:
        model: the target, as the person named it.
        dropped: so many of the oldest turns are no longer shown to the model, for want of room.
    """

    model: str
    id: str = field(default_factory=new_id)
    created: str = field(default_factory=_now)  # ISO 8601, UTC
    messages: tuple[Message, ...] = ()
    dropped: int = 0

    @property
    def system(self) -> str | None:
        first = self.messages[:1]
        return first[0].content if first and first[0].role == "system" else None

    @property
    def turns(self) -> int:
        """Questions, the unanswered one included."""
        return sum(message.role == "user" for message in self.messages)

    @property
    def question(self) -> str | None:
        """The last question."""
        asked = (m.content for m in reversed(self.messages) if m.role == "user")
        return next(asked, None)

    @property
    def unanswered(self) -> bool:
        """Does it end with a question?"""
        return bool(self.messages) and self.messages[-1].role == "user"

    @property
    def answer(self) -> Message | None:
        """The answer that it ends with."""
        last = self.messages[-1:]
        return last[0] if last and last[0].role == "assistant" else None

    def say(self, text: str) -> Conversation:
        """With a question at the end."""
        return self._ending(*self._answered(), Message("user", clean(text)))

    def answered(self, answer: Message) -> Conversation:
        """With an answer to the last question, in the place of the one it has, if it has one."""
        return self._ending(*self.without_last_answer().messages, answer)

    def without_last_answer(self) -> Conversation:
        return replace(self, messages=self.messages[:-1]) if self.answer else self

    def undo(self) -> Conversation:
        """Without the last question and its answer."""
        return self._ending(*self.without_last_answer()._answered())

    def with_system(self, text: str | None) -> Conversation:
        """With another system text; None or nothing but blanks takes it out."""
        rest = self.messages[1:] if self.system is not None else self.messages
        system = [Message("system", clean(text))] if text and text.strip() else []
        return replace(self, messages=(*system, *rest))

    def with_model(self, model: str) -> Conversation:
        """For another model, which may have room for the turns that were dropped."""
        return replace(self, model=model, dropped=0)

    def dropping(self, turns: int) -> Conversation:
        return replace(self, dropped=turns)

    def copy(self) -> Conversation:
        """The same under another id, so that the two can go different ways."""
        return replace(self, id=new_id(), created=_now())

    def cleared(self) -> Conversation:
        """A new one with the same model and system text."""
        return Conversation(self.model).with_system(self.system)

    def for_template(self) -> list[dict[str, str]]:
        """What the model is shown: the system text and the turns that were not dropped."""
        shown: list[dict[str, str]] = []
        questions = 0
        for message in self.messages:
            questions += message.role == "user"
            if message.role == "system" or questions > self.dropped:
                shown.append({"role": message.role, "content": message.content})
        return shown

    def _answered(self) -> tuple[Message, ...]:
        return self.messages[:-1] if self.unanswered else self.messages

    def _ending(self, *messages: Message) -> Conversation:
        """With other messages; at least one turn is always shown."""
        changed = replace(self, messages=messages)
        return replace(changed, dropped=max(0, min(self.dropped, changed.turns - 1)))


def clean(text: str) -> str:
    """What can be written as UTF-8: half a surrogate pair becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def whole(text: str) -> str:
    """A text that was cut off, without the half of a character at its end."""
    return clean(text).rstrip("\N{REPLACEMENT CHARACTER}")
