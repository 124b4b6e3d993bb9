"""Which model can draft for which target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from specdec_cli.engine.gguf import read_header
from specdec_cli.engine.gguf_header import GGUFHeader
from specdec_cli.errors import ModelFileError
from specdec_cli.models.catalog import CatalogModel, catalog, recognise
from specdec_cli.models.origins import Origin, fingerprint, origin
from specdec_cli.models.references import Missing, local_copy
from specdec_cli.models.store import LocalModel, gguf_files, installed, models_directory


@dataclass(frozen=True, slots=True)
class SelfDraft:
    """A low-bit copy that was made to draft for its own source."""

    path: Path
    size: int  # bytes
    origin: Origin


def partner(target_path: Path, target_reference: str) -> Path | Missing | None:
    """The draft for a target: its partner in the catalog, else the smallest installed model that
    has the same vocabulary and at most half its size. None where there is none.

    Reads headers only. Raises ModelFileError where the target itself cannot be read.
    """
    model = catalog_model(target_path, target_reference)
    if model is not None and model.draft is not None:
        draft = catalog()[model.draft]
        local = local_copy(draft)
        return local.path if local else Missing(draft.name, draft.size)
    return smallest_compatible(target_path)


def smallest_compatible(target: Path) -> Path | None:
    return next(compatible(target), None)


def compatible(target: Path) -> Iterator[Path]:
    """Installed models that can draft for a target, the smallest first; no copies of itself."""
    digest = read_header(target).vocab_digest
    if digest is None:
        return
    limit = target.stat().st_size // 2
    for candidate in sorted(installed(), key=lambda model: model.size):
        if candidate.size > limit:
            break
        if is_self_draft(candidate.path):
            continue
        try:
            header = read_header(candidate.path)
        except ModelFileError:
            continue  # damaged, or half of a split model: not a draft, and not this run's concern
        if header.vocab_digest == digest and writes_text(header):
            yield candidate.path


def self_draft(target: Path) -> Path | None:
    """The low-bit copy that was made of a target to draft for it, the newest of several."""
    own = fingerprint(target)
    made = [draft.path for draft in self_drafts() if draft.origin.draft_of == own]
    return max(made, key=lambda path: (path.stat().st_mtime_ns, path.name), default=None)


def self_drafts() -> Iterator[SelfDraft]:
    """All of them, whatever they were made of."""
    for path, size in gguf_files(models_directory()):
        made = origin(path)
        if made is not None and made.draft_of is not None:
            yield SelfDraft(path, size, made)


def is_self_draft(path: Path) -> bool:
    made = origin(path)
    return made is not None and made.draft_of is not None


def drafts_for(model: LocalModel) -> tuple[str, ...]:
    """What a model drafts for, by name: targets of the catalog, or the file it is a copy of."""
    made = origin(model.path)
    if made is not None and made.draft_of is not None:
        return (made.source,)
    return model.draft_for


def catalog_model(path: Path, reference: str) -> CatalogModel | None:
    if reference in catalog():
        return catalog()[reference]
    return recognise(path.name, path.stat().st_size) if path.is_file() else None


def writes_text(header: GGUFHeader) -> bool:
    """Not an embedding model, which may well share a vocabulary with its family."""
    return f"{header.architecture}.pooling_type" not in header.metadata
