"""What is measured: the built-in prompts, a file's, or prompts of an exact length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from specdec_cli.app import prompts
from specdec_cli.app.prompts import Prompt
from specdec_cli.errors import UsageError

CATEGORIES = ("chat", "translation", "summarisation", "qa", "math", "rag", "code", "edit")
PROSE = ("summarisation", "rag")
LONGEST = 1 << 20  # tokens; past every context, so a slip of the keyboard cannot fill the memory


@dataclass(frozen=True, slots=True)
class Workload:
    """Prompts under one name, those of a category in the order in which they are run."""

    name: str
    prompts: tuple[Prompt, ...]

    @property
    def categories(self) -> tuple[str, ...]:
        """Each once, in the order of their first prompts."""
        return tuple(dict.fromkeys(entry.category for entry in self.prompts))


@dataclass(frozen=True, slots=True)
class Synthetic:
    """A prompt that is `size` token ids and no chat message."""

    tokens: tuple[int, ...]

    @property
    def size(self) -> int:
        return len(self.tokens)

    @property
    def category(self) -> str:
        return f"synthetic {self.size}"


def full() -> Workload:
    """The built-in set."""
    return Workload("full", tuple(prompts.built_in("bench")))


def quick() -> Workload:
    """The first prompt of each category: short, and typical of its kind."""
    first: dict[str, Prompt] = {}
    for entry in full().prompts:
        first.setdefault(entry.category, entry)
    return Workload("quick", tuple(first.values()))


def from_file(path: Path) -> Workload:
    """The prompts of a JSONL file, under the file's name.

    Raises:
        UsageError: unreadable, empty, or a bad line, named by its number.
    """
    return Workload(path.name, tuple(prompts.read_file(path)))


def only(workload: Workload, categories: Sequence[str]) -> Workload:
    """The prompts of these categories, in the workload's own order; all where none is named.

    Raises:
        UsageError: a category that the workload does not have.
    """
    for name in categories:
        if name not in workload.categories:
            near = get_close_matches(name, workload.categories, n=1)
            raise UsageError(
                f"there is no category {name!r} in {workload.name}",
                why=f"it has {', '.join(workload.categories)}",
                fix=f"did you mean {near[0]!r}?" if near else "name one of these",
            )
    if not categories:
        return workload
    chosen = tuple(entry for entry in workload.prompts if entry.category in categories)
    return Workload(workload.name, chosen)


def synthetic(sizes: Sequence[int], tokenize: Callable[[str], list[int]]) -> tuple[Synthetic, ...]:
    """Prompts of exactly so many tokens, as llama-bench's `-p N`, cut from natural text.

    Acceptance on random ids would mean nothing. Past the built-in prose (some 7,000 tokens) it
    repeats itself, which flatters a drafter that copies.

    Args:
        sizes: in tokens; a size named twice is measured once.
        tokenize: text to ids, with whatever the vocabulary puts at the start of every prompt.

    Raises:
        UsageError: a size below 1 or above any context.
    """
    for size in sizes:
        if not 1 <= size <= LONGEST:
            raise UsageError(
                f"a prompt cannot have {size} tokens",
                why=f"its size is 1 to {LONGEST}",
                fix="give a number of tokens such as 512",
            )
    text = "\n\n".join(entry.prompt for entry in full().prompts if entry.category in PROSE)
    tokens = tokenize(text)
    while len(tokens) < max(sizes, default=0):
        text = f"{text}\n\n{text}"
        tokens = tokenize(text)
    return tuple(Synthetic(tuple(tokens[:size])) for size in dict.fromkeys(sizes))
