"""Texts that an answer may repeat: one that the user expects, and earlier answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from specdec_cli.cli.console import Terminal
from specdec_cli.cli.options import DrafterKind, LoadFlags, option
from specdec_cli.errors import UsageError

if TYPE_CHECKING:
    from specdec_cli.app.session import Session

MOST = 1 << 20  # bytes: a second's work, and some 130 MB of memory for the index


@dataclass(frozen=True)
class KnownTextFlags:
    """What the suffix drafter may copy from, besides the text itself."""

    expect: Annotated[
        Path | None,
        option("--expect", metavar="FILE", panel="Speculation", env=False, show_default=False,
               help="What the answer should resemble, as the file to be edited: guesses come "
                    "from it too."),
    ] = None  # fmt: skip
    memory: Annotated[
        bool,
        option("--memory", panel="Speculation",
               help="Guess from earlier answers too, kept in a private file (specdec memory)."),
    ] = False  # fmt: skip


@dataclass
class KnownTexts:
    """What was asked for, read before anything is loaded.

    Attributes:
        used: may the suffix drafter guess at all?
        told: a person knows that something is wrong with the memory.
    """

    expected: str | None
    memory: bool
    used: bool
    told: bool = False

    @staticmethod
    def read(terminal: Terminal, flags: KnownTextFlags, load: LoadFlags) -> KnownTexts:
        """Raises:
        UsageError: a file that cannot be expected.
        """
        expected = None if flags.expect is None else _read(flags.expect)
        used = _used(load)
        if expected is not None and not used:
            terminal.notice(
                "--expect is not used: only the suffix drafter copies from it "
                "(--drafter suffix, or auto with -k auto)"
            )
        return KnownTexts(expected, flags.memory, used)

    def give(self, terminal: Terminal, session: Session) -> None:
        """Let a session guess from them."""
        from specdec_cli.app import memory

        if not self.used:
            return
        texts: list[list[int]] = []
        if self.memory and (vocabulary := session.vocabulary_digest):
            recalled = memory.recall(vocabulary)
            self._tell(terminal, recalled.problem)
            texts += recalled.texts
        if self.expected is not None:
            texts.append(session.model.vocabulary.tokenize(self.expected, special=False))
        if texts:
            session.expect(texts)

    def keep(self, terminal: Terminal, session: Session, answer: Sequence[int]) -> None:
        """Remember an answer, where that was asked for."""
        from specdec_cli.app import memory

        if not self.memory:
            return
        vocabulary = session.vocabulary_digest
        problem = memory.add(vocabulary, answer) if vocabulary else "needs a vocabulary of its own"
        self._tell(terminal, problem)

    def _tell(self, terminal: Terminal, problem: str) -> None:
        if problem and not self.told:
            terminal.notice(f"the memory of earlier answers {problem}")
            self.told = True


def _used(load: LoadFlags) -> bool:
    if load.plain:
        return False
    auto = load.drafter is DrafterKind.auto and load.guesses is None
    return auto or load.drafter is DrafterKind.suffix


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST + 1)
    except OSError as error:
        raise UsageError(
            f"cannot read the expected text in {file}",
            why=error.strerror or str(error),
            fix="check the path and its permissions",
        ) from error
    if len(data) > MOST:
        raise UsageError(
            f"the expected text in {file} is too long",
            why=f"it may have {MOST >> 20} MiB: all of it is indexed before the answer begins",
            fix="give the part that the answer will repeat",
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"the expected text in {file} is not UTF-8 text",
            why=f"byte 0x{data[error.start]:02x} at offset {error.start}",
            fix="convert it, for example with iconv -t utf-8",
        ) from error
    if not text.strip():
        raise UsageError(
            f"the expected text in {file} is empty",
            why="there is nothing in it to guess from",
            fix="leave --expect out, or give a file with text",
        )
    return text
