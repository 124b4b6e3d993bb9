"""From the flags of a command to a loaded pair of models."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_cli.cli.console import Terminal
from specdec_cli.cli.models import model_path
from specdec_cli.cli.options import (
    CommonFlags,
    DrafterKind,
    LoadFlags,
    OnOffAuto,
    RuleName,
    TargetFlags,
    parse_layers,
)
from specdec_cli.cli.request_options import PromptFlags
from specdec_cli.core.options import SamplingOptions
from specdec_cli.errors import SpecdecError, UsageError

if TYPE_CHECKING:
    from specdec_cli.app.exact import Probe
    from specdec_cli.app.session import Session
    from specdec_cli.engine.llama.numerics import Numerics


def open_session(terminal: Terminal, common: CommonFlags, load: LoadFlags) -> Session:
    """Find the files of a target and its draft, fetch what is missing, and load them."""
    target = model_path(terminal, load.model, offline=common.offline)
    suffix = load.drafter is DrafterKind.suffix and not load.plain
    if (load.plain or suffix) and load.draft_model is not None:
        terminal.notice(f"{load.plain or '--drafter suffix'}: {load.draft_model} is not loaded")
    draft = None
    if not (load.plain or suffix):
        draft = draft_path(terminal, load, target, load.draft_model, offline=common.offline)
    drafts = {} if draft is None else {"model": draft}
    return load_models(terminal, common, load, target, drafts, guesses=load.most_guesses)


def load_models(
    terminal: Terminal,
    common: CommonFlags,
    flags: TargetFlags,
    target: Path,
    drafts: Mapping[str, Path],
    *,
    guesses: int,
) -> Session:
    """Load a target and its drafts by name, and say what is worth saying."""
    from specdec_cli.app.draft_models import DraftFile
    from specdec_cli.app.session import LoadOptions, Session
    from specdec_cli.engine.llama import library
    from specdec_cli.engine.llama.numerics import FASTEST

    gpu_layers = parse_layers("--gpu-layers", flags.gpu_layers)
    draft_layers = (
        gpu_layers
        if flags.gpu_layers_draft is None
        else parse_layers("--gpu-layers-draft", flags.gpu_layers_draft)
    )
    if common.verbose:
        library.show_log(lambda text: print(text, end="", file=sys.stderr, flush=True))  # noqa: T201
    probe, numerics = None, FASTEST
    if flags.wants_exact:
        probe, numerics = _exact(terminal, flags, target, gpu_layers, guesses)
    options = LoadOptions(
        target=target,
        drafts=tuple(DraftFile(path, name) for name, path in drafts.items()),
        cross_vocab=flags.cross_vocab,
        draft_tokens=guesses,
        context_size=flags.ctx_size,
        batch=flags.batch_size,
        threads=flags.threads,
        gpu_layers=gpu_layers,
        draft_gpu_layers=draft_layers,
        flash_attention=flags.flash_attn.value,
        numerics=numerics,
        probe=probe,
    )
    with terminal.working(f"loading {target.name}"):
        session = Session(options)
    for notice in session.notices:
        terminal.notice(notice)
    for remark in session.remarks:
        terminal.remark(remark)
    return session


def prompt_ids(terminal: Terminal, session: Session, prompt: str, flags: PromptFlags) -> list[int]:
    from specdec_cli.engine.llama.chat_template import ChatTemplate, raw_tokens

    if flags.raw:
        return raw_tokens(session.model.vocabulary, prompt)
    template = ChatTemplate(session.model)
    if template.notice:
        terminal.notice(template.notice)
    system = [{"role": "system", "content": flags.system}] if flags.system else []
    return template.tokens([*system, {"role": "user", "content": prompt}])


def check_together(
    load: TargetFlags, sampling: SamplingOptions, prompt: PromptFlags, rules: Sequence[RuleName]
) -> None:
    """Raises:
    UsageError: options that cannot be honoured together.
    """
    if prompt.raw and prompt.system is not None:
        raise UsageError(
            "--raw and --system do not go together",
            why="without a chat template there is no place for a system text",
            fix="write it into the prompt",
        )
    if load.wants_exact and load.flash_attn is not OnOffAuto.auto:
        raise UsageError(
            f"--exact does not go with --flash-attn {load.flash_attn}",
            why="the probe chooses the kernels",
            fix="leave --flash-attn out",
        )
    other = [rule for rule in rules if rule is not RuleName.coupled]
    if load.wants_exact and not sampling.greedy and other:
        raise UsageError(
            f"--exact does not go with --accept {other[0]}",
            why="above temperature 0 that rule keeps the distribution, not the text",
            fix="use --accept coupled, the default",
        )


def _exact(
    terminal: Terminal, load: TargetFlags, target: Path, gpu_layers: int, guesses: int
) -> tuple[Probe, Numerics]:
    """Kernels that pass the probe, and a line that says which and what finding them cost."""
    from specdec_cli.app.exact import find_exact, require_exact
    from specdec_cli.app.session import default_threads

    with terminal.working("looking for kernels that are exact") as say:
        probe = find_exact(
            target,
            draft_tokens=guesses,
            threads=load.threads or default_threads(),
            gpu_layers=gpu_layers,
            on_try=lambda words: say(f"trying {words} (once for this model and machine)"),
        )
    numerics = require_exact(probe, best_effort=load.exact_best_effort)
    if probe.numerics is None:
        terminal.notice(f"not exact: even {probe.tried[-1][0]}, {probe.tried[-1][1]}")
    else:
        terminal.remark(probe.words())
    return probe, numerics


def draft_path(
    terminal: Terminal, load: TargetFlags, target: Path, wanted: str | None, *, offline: bool
) -> Path | None:
    """The draft that was asked for, or the one that fits; None with a notice where none does."""
    if wanted is not None:
        return model_path(terminal, wanted, offline=offline)
    from specdec_cli.models.pairing import partner

    found = partner(target, load.model)
    if found is None:
        return None  # the line after the answer says so
    if isinstance(found, Path):
        return found
    try:
        return model_path(terminal, found.reference, offline=offline)
    except SpecdecError as error:  # nobody asked for this draft by name: go on without
        terminal.notice(f"no draft, plain decoding: {error.message}")
        return None
