"""From the flags of a command to a loaded pair of models."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_cli.cli.console import Terminal
from specdec_cli.cli.draft_files import find_drafts
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
from specdec_cli.errors import UsageError

if TYPE_CHECKING:
    from specdec_cli.app.exact import Probe
    from specdec_cli.app.session import LoadOptions, Session
    from specdec_cli.engine.llama.numerics import Numerics


def open_session(
    terminal: Terminal,
    common: CommonFlags,
    load: LoadFlags,
    *,
    answer: int | None = None,
    prompt: int = 0,
) -> Session:
    """Find the files of a target and its drafts, fetch what is missing, and load what may pay.

    Args:
        answer: tokens that the answer may have, where that is known.
        prompt: tokens of the prompt, roughly.
    """
    target = model_path(terminal, load.model, offline=common.offline)
    if not load.wants_draft and load.draft_model is not None:
        reason = load.plain or f"--drafter {load.drafter}"
        terminal.notice(f"{reason}: {load.draft_model} is not loaded")
    found = find_drafts(terminal, load, target, offline=common.offline)
    options = load_options(terminal, common, load, target, guesses=load.most_guesses)
    if found:
        from specdec_cli.app.draft_choice import choose, sources

        asked = load.guesses is not None or load.drafter is not DrafterKind.auto
        choice = choose(
            options, found, wanted=[file.name for file in found if asked],
            answer=answer, prompt=prompt,
        )  # fmt: skip
        for reason in choice.left_out:
            terminal.remark(reason)
        if len(choice.drafts) > 1:
            terminal.remark(sources(choice.drafts))
        options = replace(options, drafts=choice.drafts, left_out="; ".join(choice.left_out))
    session = load_session(terminal, options)
    if session.drafts and load.guesses is None:
        from specdec_cli.app.draft_choice import measure_drafts

        measure_drafts(session)
    return session


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

    options = load_options(terminal, common, flags, target, guesses=guesses)
    files = tuple(DraftFile(path, name) for name, path in drafts.items())
    return load_session(terminal, replace(options, drafts=files))


def load_session(terminal: Terminal, options: LoadOptions) -> Session:
    from specdec_cli.app.session import Session

    with terminal.working(f"loading {options.target.name}"):
        session = Session(options)
    for notice in session.notices:
        terminal.notice(notice)
    for remark in session.remarks:
        terminal.remark(remark, once=True)
    return session


def load_options(
    terminal: Terminal, common: CommonFlags, flags: TargetFlags, target: Path, *, guesses: int
) -> LoadOptions:
    """How to load a target, without drafts so far; with `--exact` the kernels are found here."""
    from specdec_cli.app.session import LoadOptions
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
    return LoadOptions(
        target=target,
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
