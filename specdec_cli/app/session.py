"""A target and its drafts, loaded, checked against each other and ready to answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from time import perf_counter
from types import TracebackType

import psutil

from specdec_cli.app.draft_models import Draft, DraftFile, meaning
from specdec_cli.app.exact import Probe
from specdec_cli.core.options import SamplingOptions
from specdec_cli.engine.drafters import Drafter, SuffixDrafter
from specdec_cli.engine.drafting import Drafting, FixedLength, NoDrafting
from specdec_cli.engine.llama import extra_kernels, library
from specdec_cli.engine.llama.context import ContextOptions, LlamaContext
from specdec_cli.engine.llama.model import LlamaModel
from specdec_cli.engine.llama.numerics import FASTEST, Numerics
from specdec_cli.errors import OutOfMemory

DEFAULT_CONTEXT = 8192
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


class Session:
    """The loaded models. A context manager: leaving it frees them.

    Attributes:
        notices: what a person should know about how this pair was loaded, a line each.
        remarks: what is good to know and nothing to worry about.
        stop: set it, and the running evaluation ends at once.
    """

    def __init__(
        self, options: LoadOptions, *, on_progress: Callable[[float], None] | None = None
    ) -> None:
        started = perf_counter()
        self.options = options
        self.notices: list[str] = []
        self.remarks: list[str] = []
        self.stop = Event()
        self._open: list[LlamaModel | LlamaContext] = []
        options.numerics.enter()
        try:
            self.model = self._load(options.target, options.gpu_layers, on_progress)
            if self.model.crippled:
                self.notices.append(extra_kernels.NOTICE)
            models = [self._load_draft(file.path) for file in options.drafts]
            self.threads = options.threads or default_threads()
            self.context_size = self._fitting_context_size(options.context_size, models)
            self.target = self._context(self.model, options.draft_tokens + 1, options.numerics)
            self.drafts = tuple(
                self._draft(file.name, model)
                for file, model in zip(options.drafts, models, strict=True)
            )
        except BaseException:
            self.close()
            raise
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

    def close(self) -> None:
        while self._open:  # contexts before the models they belong to
            self._open.pop().close()

    def forget(self) -> None:
        """Empty all caches, as a fair benchmark needs it."""
        for context in self.contexts:
            context.forget()

    @property
    def contexts(self) -> list[LlamaContext]:
        """The target's and the drafts'."""
        return [self.target, *(draft.context for draft in self.drafts)]

    @property
    def sources(self) -> tuple[str, ...]:
        """The drafters that can be asked for by name."""
        return (*(draft.name for draft in self.drafts), SUFFIX)

    def drafting(
        self, sampling: SamplingOptions, drafter: str, length: int, *, off: str = ""
    ) -> Drafting:
        """The policy for one answer; `off` is the reason where drafting is not wanted."""
        if off or length == 0:
            return NoDrafting(off or "draft length 0")
        if not self.target.can_roll_back:
            return NoDrafting(NO_ROLL_BACK)
        found = self.drafter(sampling, drafter)
        return NoDrafting("no draft model") if found is None else FixedLength(found, length)

    def drafter(self, sampling: SamplingOptions, name: str = "auto") -> Drafter | None:
        """Where guesses come from; None where there is nothing to guess with."""
        if name == SUFFIX:
            return SuffixDrafter(ends=self.model.vocabulary.ends)
        for draft in self.drafts:
            if name in (draft.name, "auto"):
                return draft.drafter(self.model, sampling)
        return None

    def _load(
        self, path: Path, gpu_layers: int, on_progress: Callable[[float], None] | None = None
    ) -> LlamaModel:
        if gpu_layers > 0 and not library.has_gpu():
            self.notices.append("this llama.cpp has no GPU support: all layers run on the CPU")
        repacked = self.options.numerics.repacked or path != self.options.target
        model = LlamaModel(path, gpu_layers=gpu_layers, repacked=repacked, on_progress=on_progress)
        self._open.append(model)
        return model

    def _load_draft(self, path: Path) -> LlamaModel:
        if path.samefile(self.options.target):
            return self.model
        return self._load(path, self.options.draft_gpu_layers)

    def _draft(self, name: str, model: LlamaModel) -> Draft:
        known = meaning(
            self.model, model, cross_vocab=self.options.cross_vocab, notice=self.notices.append
        )
        return Draft(name, model, self._context(model, 1, FASTEST), known)

    def _context(self, model: LlamaModel, rows: int, numerics: Numerics) -> LlamaContext:
        asked, chosen = self.options.flash_attention, numerics.flash_attention
        context = LlamaContext(
            model,
            ContextOptions(
                size=self.context_size,
                batch=min(self.options.batch, self.context_size),
                rows=rows,
                threads=self.threads,
                flash_attention=asked if chosen == "auto" else chosen,
                pairs=numerics.pairs,
            ),
            stop=self.stop.is_set,
        )
        self._open.append(context)
        return context

    def _fitting_context_size(self, wanted: int | None, drafts: list[LlamaModel]) -> int:
        """The size asked for, or the model's own within DEFAULT_CONTEXT and half the free memory.

        Raises:
            OutOfMemory: the size asked for cannot be held.
        """
        per_token = sum(model.cache_bytes_per_token for model in (self.model, *drafts))
        free = int(psutil.virtual_memory().available)
        trained = self.model.trained_context or DEFAULT_CONTEXT
        if wanted is None:
            fitting = max(256, free // 2 // max(1, per_token) // 256 * 256)
            size = min(trained, DEFAULT_CONTEXT, fitting)
            if size < trained:
                capped = size == fitting
                reason = "free memory" if capped else "the default limit"
                (self.notices if capped else self.remarks).append(
                    f"context {size} of the model's {trained} tokens ({reason}; -c changes it)"
                )
            return size
        if wanted * per_token > free:
            raise OutOfMemory(
                f"no memory for a context of {wanted} tokens",
                why=f"it needs {_gib(wanted * per_token)}, {_gib(free)} are free",
                fix=f"use -c {max(256, free // 2 // per_token // 256 * 256)} or less",
            )
        if wanted > trained:
            self.notices.append(
                f"context {wanted} is more than the {trained} tokens the model was trained for"
            )
        return wanted


def default_threads() -> int:
    return int(psutil.cpu_count(logical=False) or 1)


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
