"""Tab: commands, what may follow them, and paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from specdec_cli.cli.chat_commands import BY_NAME, COMMANDS
from specdec_cli.cli.chat_state import Chat


class ChatCompleter(Completer):
    """Completes lines that begin with a slash."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._paths = PathCompleter(expanduser=True)
        self._models: list[str] | None = None

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if not text.startswith("/") or text.startswith("//"):
            return
        name, space, argument = text[1:].partition(" ")
        if not space:
            for command in COMMANDS:
                if command.name.startswith(name):
                    blank = " " if command.usage else ""
                    yield Completion(
                        command.name + blank, -len(name), command.name, display_meta=command.help
                    )
        elif named := BY_NAME.get(name):
            if named.completes == "path":
                yield from self._paths.get_completions(Document(argument), event)
            else:
                yield from self._words(named.completes, argument)

    def _words(self, kind: str | Sequence[str], argument: str) -> Iterator[Completion]:
        *before, current = argument.split(" ")
        words: Sequence[str] = ()
        if isinstance(kind, str):
            words = WORDS[kind](self, before)
        elif not before:
            words = kind
        yield from (Completion(word, -len(current)) for word in words if word.startswith(current))

    def _command_names(self, before: Sequence[str]) -> Sequence[str]:
        return () if before else [command.name for command in COMMANDS]

    def _settings(self, before: Sequence[str]) -> Sequence[str]:
        setter = self._chat.setter
        if not before:
            return [f"{name} " for name in (*setter.names, "system")]
        return setter.choices(before[0]) if len(before) == 1 else ()

    def _conversations(self, before: Sequence[str]) -> Sequence[str]:
        return () if before else [entry.id for entry in self._chat.saved.list()]

    def _references(self, before: Sequence[str]) -> Sequence[str]:
        if self._models is None:  # looks at every file of the model directories: once
            from specdec_cli.models.catalog import catalog
            from specdec_cli.models.store import installed

            here = [model.reference for model in installed()]
            self._models = sorted({*here, *catalog()})
        return () if before else self._models


WORDS: dict[str, Callable[[ChatCompleter, Sequence[str]], Sequence[str]]] = {
    "command": ChatCompleter._command_names,
    "setting": ChatCompleter._settings,
    "conversation": ChatCompleter._conversations,
    "model": ChatCompleter._references,
}
