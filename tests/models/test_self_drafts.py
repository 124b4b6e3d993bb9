"""A self draft is found by its target, and never taken for an ordinary draft."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from specdec_cli.models.origins import Origin, fingerprint, note_of, record
from specdec_cli.models.pairing import (
    compatible,
    drafts_for,
    partner,
    self_draft,
    self_drafts,
    smallest_compatible,
)
from specdec_cli.models.quants import bits_of
from specdec_cli.models.store import installed

Gguf = Callable[..., bytes]


@pytest.fixture
def target(tmp_path: Path, gguf: Gguf) -> Path:
    path = tmp_path / "target.gguf"
    path.write_bytes(gguf(elements=100_000))
    return path


def put(models: Path, name: str, data: bytes, *, draft_of: Path | None = None) -> Path:
    models.mkdir(exist_ok=True)
    path = models / name
    path.write_bytes(data)
    if draft_of is not None:
        origin = Origin(draft_of.name, "0" * 64, "BF16", "Q4_0", draft_of=fingerprint(draft_of))
        record(path, origin)
    return path


def test_a_target_finds_its_own_copy_wherever_it_lies(
    target: Path, models: Path, gguf: Gguf, tmp_path: Path
) -> None:
    assert self_draft(target) is None
    copy = put(models, "target-Q4_0.gguf", gguf(elements=64), draft_of=target)
    moved = tmp_path / "elsewhere.gguf"
    target.rename(moved)
    assert self_draft(moved) == copy
    other = tmp_path / "target.gguf"
    other.write_bytes(gguf(elements=100_001))
    assert self_draft(other) is None


def test_the_newest_of_several_copies_is_taken(target: Path, models: Path, gguf: Gguf) -> None:
    old = put(models, "target-Q8_0.gguf", gguf(elements=64), draft_of=target)
    new = put(models, "target-Q4_0.gguf", gguf(elements=64), draft_of=target)
    for time, path in enumerate((old, new)):
        os.utime(path, (time, time))
    assert self_draft(target) == new
    os.utime(old, (5, 5))
    assert self_draft(target) == old


def test_a_note_without_a_file_or_without_a_meaning_is_no_copy(
    target: Path, models: Path, gguf: Gguf
) -> None:
    copy = put(models, "target-Q4_0.gguf", gguf(elements=64), draft_of=target)
    note_of(copy).write_text("{")
    assert self_draft(target) is None
    put(models, "target-Q4_0.gguf", gguf(elements=64), draft_of=target)
    copy.unlink()
    assert self_draft(target) is None
    assert list(self_drafts()) == []


def test_a_copy_is_no_ordinary_draft(target: Path, models: Path, gguf: Gguf) -> None:
    put(models, "a-copy.gguf", gguf(elements=64), draft_of=target)
    assert smallest_compatible(target) is None
    assert partner(target, str(target)) is None
    small = put(models, "small.gguf", gguf(elements=256))
    larger = put(models, "larger.gguf", gguf(elements=512))
    put(models, "other.gguf", gguf(elements=64, vocabulary=("<s>", "x")))
    assert partner(target, str(target)) == small
    assert list(compatible(target)) == [small, larger]


def test_a_listing_says_whose_draft_a_copy_is(target: Path, models: Path, gguf: Gguf) -> None:
    put(models, "copy.gguf", gguf(elements=64), draft_of=target)
    put(models, "small.gguf", gguf(elements=256))
    found = {model.reference: drafts_for(model) for model in installed()}
    assert found == {"copy": ("target.gguf",), "small": ()}
    (made,) = self_drafts()
    assert (made.path.name, made.origin.source) == ("copy.gguf", "target.gguf")


@pytest.mark.parametrize(
    ("quant", "bits"),
    [
        ("F32", 32), ("F16", 16), ("BF16", 16), ("Q8_0", 8), ("Q6_K", 6), ("Q5_K_M", 5),
        ("Q4_0", 4), ("Q4_K_M", 4), ("IQ4_XS", 4), ("IQ3_XXS", 3), ("TQ2_0", 2), ("MXFP4", 4),
        ("NVFP4", 4), ("unknown", None), ("type 77", None), ("", None),
    ],
)  # fmt: skip
def test_the_bits_of_a_type_are_in_its_name(quant: str, bits: int | None) -> None:
    assert bits_of(quant) == bits
