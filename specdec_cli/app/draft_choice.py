"""Which of the drafts at hand are worth loading, before a byte of them is read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from specdec_cli.app.context_size import DEFAULT_CONTEXT, gib
from specdec_cli.app.draft_models import MODEL, SELF, DraftFile
from specdec_cli.app.experience_store import recall
from specdec_cli.app.session import LoadOptions, Session, setting_of
from specdec_cli.core.cost_curve import CostCurve, speedup
from specdec_cli.core.experience import Experience
from specdec_cli.core.pass_seconds import PassSeconds
from specdec_cli.engine.calibration import pass_seconds
from specdec_cli.engine.gguf import read_header, split_parts
from specdec_cli.engine.gguf_header import GGUFHeader
from specdec_cli.engine.llama import library
from specdec_cli.engine.sources import HOPED
from specdec_cli.errors import EvaluationError, ModelFileError
from specdec_cli.models.origins import fingerprint

LEAST = 1.05  # speed-up that a draft must be able to reach to be worth loading
LENGTHS = range(1, 17)  # draft lengths that are tried for it
LOADED = 5e8  # bytes a second that loading a draft takes, its weights rearranged for kernels
ROWS = (1, 8, 64)  # of a draft's passes that are measured when it is new; the last: a prompt


@dataclass(frozen=True, slots=True)
class Choice:
    """The drafts to load, and why the others are not, a sentence each."""

    drafts: tuple[DraftFile, ...]
    left_out: tuple[str, ...] = ()


def choose(
    options: LoadOptions,
    found: Sequence[DraftFile],
    *,
    wanted: Collection[str],
    answer: int | None,
    prompt: int,
) -> Choice:
    """Leave out what can never pay by what is known of it, and what the memory cannot hold.

    Args:
        found: the drafts at hand, the first choice first.
        wanted: names of drafts that a person asked for: loaded whether or not they pay. What was
            asked for as a source and not as a file, the self draft, has to fit the memory too.
        answer: tokens that the answer may have, where that is known.
        prompt: tokens that it has to read before, roughly.

    Raises:
        ModelFileError: a file cannot be read.
    """
    experience = recall(setting_of(options)).experience
    worthy, left_out = [], []
    for file in found:
        reason = ""
        if file.name not in wanted and file.path.is_file():  # what is not, the load will name
            reason = worth_loading(
                experience,
                fingerprint(file.path),
                answer,
                1 if file.name == SELF else prompt,  # a copy takes over what the target has read
                loading=file.path.stat().st_size / LOADED,
            )
        if reason:
            left_out.append(f"{named(file)} is not loaded: {reason}")
        else:
            worthy.append(file)
    fitting = fit(options, worthy, certain=[MODEL] if MODEL in wanted else [])
    return Choice(fitting.drafts, (*left_out, *fitting.left_out))


def fit(
    options: LoadOptions, found: Sequence[DraftFile], *, certain: Collection[str] = ()
) -> Choice:
    """The drafts that the memory can hold beside the target and each other, the first ones first.

    Args:
        certain: names of drafts that are loaded whether or not they seem to fit.

    Raises:
        ModelFileError: a file that is not optional cannot be read.
    """
    left = Memory.free_beside(options)
    kept, left_out = [], []
    for file in found:
        try:
            need = left.needed(file.path)
        except ModelFileError as error:
            if not file.optional:
                raise
            left_out.append(f"{named(file)} is not loaded: {error.message}")
            continue
        if need > left.bytes and file.name not in certain:
            free = f"{gib(need)} needed beside the target, {gib(max(0, left.bytes))} free"
            left_out.append(f"{named(file)} is not loaded: {free}")
        else:
            kept.append(file)
            left = left.without(need)
    return Choice(tuple(kept), tuple(left_out))


def worth_loading(
    experience: Experience, draft: str, answer: int | None, prompt: int, *, loading: float = 0.0
) -> str:
    """Why a draft could not pay, by what passes cost here; nothing where it could, or may.

    Args:
        draft: its key in the experience. One that has never been loaded is always worth it.
        answer: tokens that the answer may have, where that is known.
        prompt: tokens that the draft has to read before its first guess, roughly.
        loading: seconds that loading it takes, roughly.
    """
    if experience.verify is None or draft not in experience.drafts:
        return ""
    verify = CostCurve(experience.verify.points)
    drafting = CostCurve(experience.drafts[draft].points)
    seen = [known.later for (source, _), known in experience.acceptance.items() if source == draft]
    acceptance = max([HOPED, *seen])
    best = max(speedup(verify, drafting, k, acceptance) for k in LENGTHS)
    if best < LEAST:
        return f"even with {acceptance:.0%} of its guesses right it would not pay here (measured)"
    if answer is not None:
        saved = max(0, answer - 1) * verify(1) * (1 - 1 / best)  # the first token is the prompt's
        if saved < loading + drafting(max(1, prompt)):
            tokens = "1 token is" if answer == 1 else f"{answer} tokens are"
            return f"{tokens} too few to make up for loading it and its reading of the prompt"
    return ""


def measure_drafts(session: Session) -> None:
    """Before a draft is first used: what its passes cost, so that nobody has to guess."""
    for draft in session.drafts:
        if draft.key not in session.experience.drafts:
            with suppress(EvaluationError):  # the answer will meet it again, and say so
                rows = ROWS[:-1] if draft.borrows else ROWS
                found = pass_seconds(draft.context, rows, context=0, read="last", tokens=(0, 1))
                session.experience.drafts[draft.key] = PassSeconds(found)


def sources(drafts: Sequence[DraftFile]) -> str:
    """Where guesses can come from, in words."""
    named = [f"{file.path.stem} ({file.name})" for file in drafts]
    return f"guesses from {', '.join(named)} and the text itself (suffix)"


def named(file: DraftFile) -> str:
    return "the self draft" if file.name == SELF else f"the draft {file.path.stem}"


@dataclass(frozen=True, slots=True)
class Memory:
    """What is free once the target has its place, for contexts of so many tokens."""

    bytes: int
    context: int

    @staticmethod
    def free_beside(options: LoadOptions) -> Memory:
        header = read_header(options.target)
        trained = header.context_length or DEFAULT_CONTEXT
        context = options.context_size or min(trained, DEFAULT_CONTEXT)
        whole = Memory(int(psutil.virtual_memory().available), context)
        return whole.without(whole.needed(options.target))

    def without(self, needed: int) -> Memory:
        return Memory(self.bytes - needed, self.context)

    def needed(self, path: Path) -> int:
        """Weights and cache of a model; nothing is known of a GPU's memory, so nothing there."""
        if library.has_gpu():
            return 0
        header = read_header(path)
        weights = sum(part.stat().st_size for part in split_parts(path, header.split_count))
        return weights + self.context * cache_bytes_per_token(header)


def cache_bytes_per_token(header: GGUFHeader) -> int:
    """One token's keys and values at 16 bits; 0 where the file does not say."""

    def number(key: str) -> int:
        return header.number(f"{header.architecture}.{key}") or 0

    heads = number("attention.head_count")
    width = number("embedding_length") // max(1, heads)
    key = number("attention.key_length") or width
    value = number("attention.value_length") or width
    return number("block_count") * (number("attention.head_count_kv") or heads) * (key + value) * 2
