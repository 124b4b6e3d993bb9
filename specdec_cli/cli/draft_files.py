"""Which drafts are at hand for a target: those asked for, its partner, its self draft."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from specdec_cli.cli.console import Terminal
from specdec_cli.cli.models import model_path
from specdec_cli.cli.options import DrafterKind, LoadFlags, TargetFlags
from specdec_cli.errors import SpecdecError, UsageError

if TYPE_CHECKING:
    from specdec_cli.app.draft_models import DraftFile


def find_drafts(
    terminal: Terminal, load: LoadFlags, target: Path, *, offline: bool
) -> list[DraftFile]:
    """The draft models that are asked for or at hand, the first choice first.

    Raises:
        UsageError: the target has no self draft, and nothing else will do.
    """
    from specdec_cli.app.draft_models import MODEL, SELF, DraftFile

    if not load.wants_draft:
        return []
    found = []
    only_self = load.drafter is DrafterKind.self
    if only_self and load.draft_model is not None:
        terminal.notice(f"--drafter self: {load.draft_model} is not loaded")
    if not only_self:
        path = draft_path(terminal, load, target, load.draft_model, offline=offline)
        found += [DraftFile(path, MODEL)] if path else []
    # A fixed length takes its guesses from one source.
    others = load.drafter is DrafterKind.auto and (load.guesses is None or not found)
    if only_self or others:
        path = self_draft_path(load.model, target, needed=only_self)
        found += [DraftFile(path, SELF, optional=not only_self)] if path else []
    return found


def self_draft_path(reference: str, target: Path, *, needed: bool) -> Path | None:
    """Raises:
    UsageError: there is none, and it is needed.
    """
    from specdec_cli.models.pairing import self_draft

    path = self_draft(target)
    if path is None and needed:
        raise UsageError(
            f"{target.name} has no self draft",
            why="--drafter self takes its guesses from a low-bit copy, and none was made of it",
            fix=f"specdec draft make {reference}",
        )
    return path


def draft_path(
    terminal: Terminal, load: TargetFlags, target: Path, wanted: str | None, *, offline: bool
) -> Path | None:
    """The draft that was asked for, or the one that fits; None with a notice where none does."""
    if wanted is not None:
        return model_path(terminal, wanted, offline=offline)
    from specdec_cli.models.pairing import partner, self_draft

    found = partner(target, load.model)
    if found is None:
        return None  # the line after the answer says so
    if isinstance(found, Path):  # or its low-bit copy: as good a draft, and cheaper
        return self_draft(found) or found
    try:
        return model_path(terminal, found.reference, offline=offline)
    except SpecdecError as error:  # nobody asked for this draft by name: go on without
        terminal.notice(f"no draft, plain decoding: {error.message}")
        return None
