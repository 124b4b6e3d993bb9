"""Which model can draft for which target."""

from __future__ import annotations

from pathlib import Path

from specdec_cli.engine.gguf import GGUFHeader, read_header
from specdec_cli.errors import ModelFileError
from specdec_cli.models.catalog import CatalogModel, catalog, recognise
from specdec_cli.models.references import Missing, local_copy
from specdec_cli.models.store import installed


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
    digest = read_header(target).vocab_digest
    if digest is None:
        return None
    limit = target.stat().st_size // 2
    for candidate in sorted(installed(), key=lambda model: model.size):
        if candidate.size > limit:
            break
        try:
            header = read_header(candidate.path)
        except ModelFileError:
            continue  # damaged, or half of a split model: not a draft, and not this run's concern
        if header.vocab_digest == digest and writes_text(header):
            return candidate.path
    return None


def catalog_model(path: Path, reference: str) -> CatalogModel | None:
    if reference in catalog():
        return catalog()[reference]
    return recognise(path.name, path.stat().st_size) if path.is_file() else None


def writes_text(header: GGUFHeader) -> bool:
    """Not an embedding model, which may well share a vocabulary with its family."""
    return f"{header.architecture}.pooling_type" not in header.metadata
