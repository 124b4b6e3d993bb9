"""One turn of a chat on the screen: ghost text, the answer, the live line, the line after it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from specdec_cli.app.chat.events import (
    Dropped,
    Event,
    Notice,
    NotSaved,
    Proposed,
    Reading,
    Started,
)
from specdec_cli.app.generate import Answer, Token
from specdec_cli.cli.console import Terminal
from specdec_cli.cli.live import LiveStream
from specdec_cli.cli.summary import folded, live_line, summary
from specdec_cli.core.statistics import Statistics
from specdec_cli.core.thinking import Passage, ThinkingStream

SLOW_TO_READ = 64  # tokens; fewer are read before a line about it could be


@dataclass(frozen=True, slots=True)
class Shown:
    """What came of a turn."""

    answer: Answer
    seed: int


class Replies:
    """Draws the turns of a chat. `colours` and `ghosts` may change between them."""

    def __init__(self, terminal: Terminal, *, colours: bool, ghosts: bool) -> None:
        self.colours = colours
        self.ghosts = ghosts
        self._terminal = terminal
        self._live: LiveStream | None = None
        self._thoughts = ThinkingStream()
        self._begun = self._ends_line = False
        self._later: list[Dropped | Notice | NotSaved] = []

    def proposed(self, proposal: Proposed) -> None:
        """Drafted tokens, while the target looks at them."""
        if self.ghosts and self._live is not None:
            self._live.ghost("".join(proposal.texts))

    def show(self, events: Iterator[Event]) -> Shown | None:
        """Draw a turn to its end; None where it was over before the answer began."""
        self._live = live = LiveStream(self._terminal, colours=self.colours)
        self._thoughts, self._later = ThinkingStream(), []
        self._begun = self._ends_line = False
        seed, answer = 0, None
        try:
            for event in events:
                if isinstance(event, Token):
                    self._write(live, self._thoughts.add(event.pieces))
                elif isinstance(event, Statistics):
                    live.status(live_line(event, self._terminal.err.width))
                elif isinstance(event, Started):
                    seed = event.seed
                    self._thoughts = ThinkingStream(inside=event.thinking)
                elif isinstance(event, Answer):
                    answer = event
                    self._write(live, self._thoughts.add(event.rest))
                else:
                    self._aside(live, event)
        finally:
            self._write(live, self._thoughts.finish())
            live.close()
            self._live = None
            if self._begun and not self._ends_line:
                sys.stdout.write("\n")
                sys.stdout.flush()
            for event in self._later:
                say(self._terminal, event)
        return None if answer is None else Shown(answer, seed)

    def _write(self, live: LiveStream, passages: Sequence[Passage]) -> None:
        for text, source, thought in passages:
            live.write(text, source, aside=thought)
            self._begun, self._ends_line = True, text.endswith("\n")

    def _aside(self, live: LiveStream, event: Dropped | Reading | Notice | NotSaved) -> None:
        """Show a line of its own, after the answer where that has begun."""
        if isinstance(event, Reading):
            if event.tokens - event.cached >= SLOW_TO_READ:
                live.status(reading(event), at_once=True)
        elif self._begun:
            self._later.append(event)
        else:
            live.close()
            say(self._terminal, event)


def say(terminal: Terminal, event: Dropped | Notice | NotSaved) -> None:
    """What a turn has to report beside its answer."""
    if isinstance(event, Dropped):
        turns = "turn is" if event.turns == 1 else f"{event.turns} turns are"
        terminal.notice(
            f"the context is full: the oldest {turns} no longer shown to the model "
            f"({event.tokens:,} tokens less, {event.in_all} left out in all)"
        )
    elif isinstance(event, NotSaved):
        terminal.notice(
            f"{event.error.message} ({event.error.why}); nothing is lost in memory, "
            f"the next turn tries again. {event.error.fix}"
        )
    else:
        terminal.notice(event.text)


def reading(event: Reading) -> str:
    """`reading 1,204 tokens, 812 cached`"""
    who = "reading" if event.model == "target" else "the draft reads"
    cached = f", {event.cached:,} {'from disk' if event.from_disk else 'cached'}"
    return f"{who} {event.tokens - event.cached:,} tokens{cached if event.cached else ''}"


def after(shown: Shown, speedup: float | None, width: int, *, told: str = "") -> str:
    """The lines after an answer, without what was `told` when the models were loaded."""
    answer = shown.answer
    parts = summary(answer, shown.seed, hint="/continue goes on", told=told)
    if speedup is not None and answer.statistics.drafted:
        at = next((i for i, part in enumerate(parts) if part.endswith("tok/s")), None)
        if at is not None:
            parts[at] += f", ≈{speedup:.2f}x plain"
    parts.insert(-1, f"prompt {answer.prompt_tokens:,}, cached {answer.cached_tokens:,}")
    return folded(parts, width)
