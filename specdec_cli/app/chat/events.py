"""What a turn of a chat reports, beside the tokens, statistics and answer of `app.generate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from specdec_cli.app.generate import Answer, Token
from specdec_cli.core.statistics import Statistics
from specdec_cli.errors import SpecdecError


@dataclass(frozen=True, slots=True)
class Dropped:
    """The context was full: the model is no longer shown these oldest turns."""

    turns: int  # dropped now
    in_all: int
    tokens: int  # by which the prompt became shorter


@dataclass(frozen=True, slots=True)
class Started:
    """The answer begins; nothing has been evaluated yet.

    Attributes:
        thinking: the template has opened the model's thoughts: give it to `core.thinking`.
    """

    seed: int
    thinking: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """A model is about to read the prompt: the target before the first token, a draft after it.

    Whether a draft does is up to the policy.
    """

    model: str  # `target`, or the draft's source
    tokens: int
    cached: int  # of them, the ones it need not read
    from_disk: bool = False


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a person should know; the chat goes on."""

    text: str


@dataclass(frozen=True, slots=True)
class NotSaved:
    """The conversation could not be written. It is whole in memory; the next turn tries again."""

    error: SpecdecError


@dataclass(frozen=True, slots=True)
class Proposed:
    """Drafted tokens as text, before the target has judged them: one text a token.

    Reported through a callback, because the target's pass comes between it and the next event.
    Whatever event comes next settles it. A text may be empty: control tokens, half characters.
    """

    texts: tuple[str, ...]
    source: str


Event: TypeAlias = Dropped | Started | Reading | Notice | NotSaved | Token | Statistics | Answer
"""In this order:

    Dropped? Notice? Reading Started NotSaved? (Token+ Statistics)* Answer NotSaved? Notice*

A draft's `Reading`, and a `Notice` about it, come after the first token.
"""
