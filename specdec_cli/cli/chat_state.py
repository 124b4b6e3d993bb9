"""A running chat: the loaded models, the conversation, and what commands may change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from specdec_cli.app.chat.conversation import Conversation
from specdec_cli.app.chat.events import Event
from specdec_cli.app.chat.prompt_cache import PromptCache
from specdec_cli.app.chat.store import Store
from specdec_cli.app.chat.talk import Talk
from specdec_cli.app.chat.totals import Totals
from specdec_cli.app.session import Session
from specdec_cli.cli.chat_reply import Replies, Shown, after, say
from specdec_cli.cli.chat_settings import ROOM, Flags, Setter
from specdec_cli.cli.console import Terminal
from specdec_cli.cli.loading import open_session
from specdec_cli.cli.options import CommonFlags, LoadFlags
from specdec_cli.cli.signals import exit_if_stopped, stop_on_signals
from specdec_cli.errors import SpecdecError, UsageError

FULL = "the context is full: /undo or /clear make room, and so does /set on-full drop-oldest"


class Chat:
    """Everything that lives as long as the chat does.

    Attributes:
        speculates: `/spec`.
        attached: (name, text) of files that go before the next message.
        draft: text to edit in the next input line.
        store: where turns are saved, `saved` where they can be loaded from.
        editing: the next message replaces the last one.
        last: the last turn.
        ended: the loop is to end.
    """

    def __init__(
        self,
        terminal: Terminal,
        common: CommonFlags,
        setter: Setter,
        flags: Flags,
        conversation: Conversation,
        *,
        store: Store,
        interactive: bool,
    ) -> None:
        self.terminal = terminal
        self.setter = setter
        self.flags = flags
        self.store = None if flags.chat.no_save else store
        self.saved = store
        self.interactive = interactive
        self.replies = Replies(terminal, colours=True, ghosts=flags.chat.ghost)
        self.speculates = True
        self.attached: list[tuple[str, str]] = []
        self.draft = ""
        self.editing = False
        self.last: Shown | None = None
        self.ended = False
        self._common = common
        self._tiled: bool | None = None  # nothing has been evaluated yet
        self.totals = Totals()
        cached = flags.chat.prompt_cache and not flags.chat.no_save  # it holds what was said
        self.cache = PromptCache() if cached else None
        self.talk = self._open(flags.load, conversation)
        self._tiled = self.session.options.numerics.tiled

    @property
    def session(self) -> Session:
        return self.talk.session

    @property
    def conversation(self) -> Conversation:
        return self.talk.conversation

    @property
    def offline(self) -> bool:
        return self._common.offline

    def close(self) -> None:
        if problem := self.session.remember():
            self.terminal.notice(problem)
        for notice in self.talk.close():
            say(self.terminal, notice)
        self.session.close()

    def send(self, text: str) -> None:
        """Ask what a person typed, after the files that were read for it."""
        files = [f"{name}:\n\n{content}" for name, content in self.attached]
        before = self.conversation
        if self.editing:
            self.change(before.undo())
        undone, self.editing = self.conversation, False
        try:
            self.answer(self.talk.ask("\n\n".join([*files, text])))
        except SpecdecError:
            if self.conversation is undone:
                self.change(before)
            raise
        self.attached.clear()

    def answer(self, events: Iterator[Event]) -> None:
        """Show a turn. Ctrl-C stops it and keeps what is there; without a terminal, it also ends
        the chat, as SIGTERM does."""
        self.apply()
        self.session.stop.clear()
        with stop_on_signals(self.session.stop, insist=False) as signals:
            shown = self.replies.show(events)
        if shown is not None:
            self.last = shown
            told = self.session.options.left_out
            width = self.terminal.err.width
            self.terminal.remark(after(shown, self.talk.speedup, width, told=told))
            if shown.answer.finish == "context" and not self.flags.chat.on_full.drops:
                self.terminal.notice(FULL)
        if signals.terminated or not self.interactive:
            exit_if_stopped(signals)

    def apply(self) -> None:
        """Make the next answer follow the options as they are now."""
        self.talk.settings = self.flags.settings(plain="" if self.speculates else "/spec off")
        self.replies.ghosts = self.flags.chat.ghost

    def change(self, conversation: Conversation) -> None:
        """Go on with another version of the conversation, or with another one."""
        if problem := self.talk.replace(conversation):
            say(self.terminal, problem)

    def reload(self, load: LoadFlags) -> None:
        """Go on with other models. Where they cannot be loaded, the old ones are again.

        Raises:
            SpecdecError: why they cannot.
        """
        conversation = self.conversation
        if load.model != self.flags.load.model:
            conversation = conversation.with_model(load.model)
        before = self.flags.load
        self.close()
        try:
            self.talk = self._open(load, conversation)
        except BaseException:
            self.talk = self._open(before, self.talk.conversation)
            raise
        self.flags = replace(self.flags, load=load)

    def _open(self, load: LoadFlags, conversation: Conversation) -> Talk:
        room = load if load.plain or load.guesses is None else replace(
            load, draft_tokens=str(max(load.most_guesses, ROOM)), draft_tokens_alias=None
        )  # fmt: skip
        session = open_session(self.terminal, self._common, room)
        try:
            if self._tiled and not session.options.numerics.tiled:
                raise UsageError(
                    f"--exact with {load.model} needs a chat of its own",
                    why="llama.cpp has chosen its kernels for this process by now",
                    fix=f"leave and start again with --exact -m {load.model}",
                )
            talk = Talk(
                session,
                conversation,
                self.flags.settings(),
                store=self.store,
                prompt_cache=self.cache,
                totals=self.totals,
                on_proposal=self.replies.proposed,
            )
        except BaseException:
            session.close()
            raise
        if talk.notice:
            self.terminal.notice(talk.notice)
        return talk
