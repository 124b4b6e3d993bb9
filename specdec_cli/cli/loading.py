"""From the flags of a command to a loaded pair of models."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_cli.cli.console import Terminal
from specdec_cli.cli.models import model_path
from specdec_cli.cli.options import CommonFlags, LoadFlags, parse_layers
from specdec_cli.errors import SpecdecError, UsageError

if TYPE_CHECKING:
    from specdec_cli.app.session import Session


def open_session(terminal: Terminal, common: CommonFlags, load: LoadFlags) -> Session:
    """Find the files, fetch what is missing, load, and say what is worth saying."""
    if load.no_draft and load.draft_model is not None:
        raise UsageError(
            "--no-draft and --draft-model contradict each other", fix="give one of them"
        )
    gpu_layers = parse_layers("--gpu-layers", load.gpu_layers)
    draft_layers = (
        gpu_layers
        if load.gpu_layers_draft is None
        else parse_layers("--gpu-layers-draft", load.gpu_layers_draft)
    )
    target = model_path(terminal, load.model, offline=common.offline)
    draft = None if load.plain else _draft_path(terminal, load, target, offline=common.offline)

    from specdec_cli.app.session import LoadOptions, Session
    from specdec_cli.engine.llama import library

    if common.verbose:
        library.show_log(lambda text: print(text, end="", file=sys.stderr, flush=True))  # noqa: T201
    options = LoadOptions(
        target=target,
        draft=draft,
        draft_tokens=load.guesses,
        context_size=load.ctx_size,
        batch=load.batch_size,
        threads=load.threads,
        gpu_layers=gpu_layers,
        draft_gpu_layers=draft_layers,
        flash_attention=load.flash_attn.value,
    )
    if terminal.live and not common.verbose:
        with terminal.err.status(f"loading {target.name}"):
            session = Session(options)
    else:
        session = Session(options)
    for notice in session.notices:
        terminal.notice(notice)
    return session


def _draft_path(terminal: Terminal, load: LoadFlags, target: Path, *, offline: bool) -> Path | None:
    """The draft that was asked for, or the one that fits; None with a notice where none does."""
    if load.draft_model is not None:
        return model_path(terminal, load.draft_model, offline=offline)
    from specdec_cli.models.pairing import partner

    found = partner(target, load.model)
    if found is None:
        terminal.notice(f"no draft for {target.name} on this machine: plain decoding")
        return None
    if isinstance(found, Path):
        return found
    try:
        return model_path(terminal, found.reference, offline=offline)
    except SpecdecError as error:  # nobody asked for this draft by name: go on without
        terminal.notice(f"no draft, plain decoding: {error.message}")
        return None
