"""A target and its drafts, loaded, checked against each other and ready to answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Event
from time import perf_counter
from types import TracebackType

import psutil

from specdec_cli.app.context_size import fitting
from specdec_cli.app.draft_models import SELF, Draft, DraftFile, meaning
from specdec_cli.app.exact import Probe
from specdec_cli.app.experience_store import Setting, keep, recall
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.suffix import SuffixAutomaton
from specdec_cli.engine.adaptive import LOOK
from specdec_cli.engine.drafters import BETWEEN, Drafter, SuffixDrafter
from specdec_cli.engine.gguf import read_header
from specdec_cli.engine.llama import extra_kernels, library
from specdec_cli.engine.llama.borrowing import BorrowingContext
from specdec_cli.engine.llama.context import ContextOptions, LlamaContext
from specdec_cli.engine.llama.model import LlamaModel
from specdec_cli.engine.llama.numerics import FASTEST, FEW_ROWS_ON_CPU, Numerics
from specdec_cli.errors import SpecdecError
from specdec_cli.models.origins import fingerprint

SUFFIX = SuffixDrafter.source
NO_ROLL_BACK = "this target keeps a state that cannot take back rejected guesses"


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Which files, and how to run them. None asks for the default of this machine or model."""

    target: Path
    drafts: tuple[DraftFile, ...] = ()
    cross_vocab: bool = False  # a draft with another vocabulary will do
    draft_tokens: int = 4  # the most guesses that a round may have
    context_size: int | None = None
    batch: int = 512
    threads: int | None = None
    gpu_layers: int = -1
    draft_gpu_layers: int = -1
    flash_attention: str = "auto"
    numerics: Numerics = FASTEST  # of the target; a draft always runs as fast as it can
    probe: Probe | None = None  # how these numerics were found, where `--exact` was asked for
    left_out: str = ""  # which draft was not loaded, and why


class Session:
    """The loaded models. A context manager: leaving it frees them.

    Attributes:
        notices: what a person should know about how this pair was loaded, a line each.
        remarks: what is good to know and nothing to worry about.
        stop: set it, and the running evaluation ends at once.
        known: texts that answers may repeat.
    """

    known: SuffixAutomaton | None = None

    def __init__(
        self,
        options: LoadOptions,
        *,
        on_progress: Callable[[float], None] | None = None,
        stop: Event | None = None,
    ) -> None:
        started = perf_counter()
        self.options = options
        self.notices: list[str] = []
        self.remarks: list[str] = []
        self.stop = stop or Event()
        self._open: list[LlamaModel | LlamaContext] = []
        options.numerics.enter()
        try:
            self.model = self._load(options.target, options.gpu_layers, on_progress)
            if self.model.crippled:
                self.notices.append(extra_kernels.NOTICE)
            models = [self._load_draft(file) for file in options.drafts]
            self.threads = options.threads or default_threads()
            loaded = [model for model in models if model is not None]
            room = fitting(options.context_size, [self.model, *loaded])
            self.context_size = room.size
            self.notices += room.notices
            self.remarks += room.remarks
            self.target = self._context(self.model, options.draft_tokens + 1, options.numerics)
            drafts = (
                self._draft(file, model)
                for file, model in zip(options.drafts, models, strict=True)
                if model is not None
            )
            self.drafts = tuple(draft for draft in drafts if draft is not None)
        except BaseException:
            self.close()
            raise
        self._setting = setting_of(options)
        recalled = recall(self._setting)
        self.experience = recalled.experience
        self._recall_failed = bool(recalled.problem)
        if recalled.problem:
            self.notices.append(f"the record of what passes cost {recalled.problem}")
        self.load_seconds = perf_counter() - started

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def remember(self) -> str:
        """Keep what this session has learned for the next one.

        Returns:
            Why that failed, in words; nothing where the reason has been told before.
        """
        if self.experience.verify is None:
            return ""
        problem = keep(self._setting, self.experience)
        if not problem or self._recall_failed:
            return ""
        return f"the record of what passes cost {problem}"

    def close(self) -> None:
        while self._open:  # contexts before the models they belong to
            self._open.pop().close()

    def forget(self) -> None:
        """Empty all caches, and what answers have taught, as a fair benchmark needs it."""
        for context in self.contexts:
            context.forget()
        self.experience.forget_answers()

    @property
    def contexts(self) -> list[LlamaContext]:
        """The target's and the drafts'."""
        return [self.target, *(draft.context for draft in self.drafts)]

    @property
    def drafters(self) -> tuple[str, ...]:
        """What can be asked for by name."""
        return (*(draft.name for draft in self.drafts), SUFFIX)

    def sources_of(self, drafter: str) -> tuple[str, ...]:
        """The sources that a way of drafting may take its guesses from."""
        if drafter == "auto":
            return self.drafters
        return (drafter,) if drafter in self.drafters else ()

    def draft(self, name: str = "auto") -> Draft | None:
        """The draft of that name, or whichever there is."""
        return next((draft for draft in self.drafts if name in (draft.name, "auto")), None)

    def drafter(self, sampling: SamplingOptions, name: str = "auto") -> Drafter | None:
        """One source of guesses; None where there is nothing to guess with."""
        if name == SUFFIX:
            return self.suffix_drafter()
        draft = self.draft(name)
        return None if draft is None else draft.drafter(self.model, sampling)

    @property
    def draft_numerics(self) -> Numerics:
        on_gpu = library.has_gpu() and self.options.draft_gpu_layers != 0
        return FASTEST if on_gpu else FEW_ROWS_ON_CPU

    @cached_property
    def vocabulary_digest(self) -> str | None:
        """Tells vocabularies apart; None where the file has no list of tokens."""
        return read_header(self.options.target).vocab_digest

    def suffix_drafter(self) -> SuffixDrafter:
        return SuffixDrafter(ends=self.model.vocabulary.ends, known=self.known)

    def expect(self, texts: Iterable[Sequence[int]]) -> None:
        """Let the suffix drafter guess from these texts too."""
        self.known = SuffixAutomaton(token for text in texts for token in (*text, BETWEEN))

    def _load(
        self, path: Path, gpu_layers: int, on_progress: Callable[[float], None] | None = None
    ) -> LlamaModel:
        if gpu_layers > 0 and not library.has_gpu():
            self.notices.append("this llama.cpp has no GPU support: all layers run on the CPU")
        repacked = self.options.numerics.repacked or path != self.options.target
        model = LlamaModel(path, gpu_layers=gpu_layers, repacked=repacked, on_progress=on_progress)
        self._open.append(model)
        return model

    def _load_draft(self, file: DraftFile) -> LlamaModel | None:
        """None for an optional draft that cannot be loaded."""
        if file.path.samefile(self.options.target):
            return self.model
        try:
            return self._load(file.path, self.options.draft_gpu_layers)
        except SpecdecError as error:
            self._go_on_without(file, error)
            return None

    def _draft(self, file: DraftFile, model: LlamaModel) -> Draft | None:
        """None for an optional draft that cannot be used."""
        try:
            known = meaning(
                self.model, model, cross_vocab=self.options.cross_vocab, notice=self.notices.append
            )
            context = self._context(model, LOOK, self.draft_numerics)
            # A copy's keys and values are nearly the target's: it need not read what that has read.
            same = file.name == SELF and context.can_roll_back
            reads = BorrowingContext(context, self.target) if same else context
            return Draft(file.name, fingerprint(model.path), model, context, reads, known)
        except SpecdecError as error:
            self._go_on_without(file, error)
            self._open.remove(model)
            model.close()
            return None

    def _go_on_without(self, file: DraftFile, error: SpecdecError) -> None:
        if not file.optional:
            raise error
        self.notices.append(f"{file.path.name} does not draft: {error.message} ({error.why})")

    def _context(self, model: LlamaModel, rows: int, numerics: Numerics) -> LlamaContext:
        asked, chosen = self.options.flash_attention, numerics.flash_attention
        context = LlamaContext(
            model,
            ContextOptions(
                size=self.context_size,
                batch=min(self.options.batch, self.context_size),
                rows=rows,
                threads=self.threads,
                flash_attention=chosen if asked == "auto" else asked,
                pairs=numerics.pairs,
            ),
            stop=self.stop.is_set,
        )
        self._open.append(context)
        return context


def setting_of(options: LoadOptions) -> Setting:
    """What the costs of these models depend on."""
    return Setting(
        options.target, options.threads or default_threads(), options.gpu_layers,
        options.draft_gpu_layers, options.flash_attention, options.numerics,
    )  # fmt: skip


def default_threads() -> int:
    return int(psutil.cpu_count(logical=False) or 1)
