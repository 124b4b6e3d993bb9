"""What a model file is and was made from, as reports say it."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest

from specdec_cli.models import origins
from specdec_cli.models.origins import Origin, checksum, fingerprint, origin, record

MADE = Origin("small.gguf", "a" * 64, "Q4_K_M", "BF16")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"weights")
    return path


def test_what_was_recorded_is_read_back(file: Path) -> None:
    assert origin(file) is None
    record(file, MADE)
    assert origin(file) == MADE
    assert file.read_bytes() == b"weights"


@pytest.mark.parametrize("note", ["", "[]", "3", '{"source": "x"}', '{"sauce": 1}', "\xff"])
def test_a_note_that_cannot_be_read_is_none(file: Path, note: str) -> None:
    record(file, MADE)
    (written,) = file.parent.glob("model.gguf.*")
    written.write_bytes(note.encode("latin-1"))
    assert origin(file) is None


@pytest.mark.parametrize(
    ("source", "made", "enlarged"),
    [
        ("Q4_K_M", "BF16", True),
        ("Q4_K_M", "Q8_0", True),
        ("Q8_0", "F32", True),
        ("F16", "BF16", False),
        ("F16", "Q8_0", False),
        ("BF16", "Q4_0", False),
        ("Q4_0", "Q5_0", False),
    ],
)
def test_a_file_that_costs_more_than_it_knows_says_so(
    source: str, made: str, enlarged: bool
) -> None:
    found = Origin("small.gguf", "a" * 64, source, made)
    assert found.enlarged is enlarged
    assert found.words().startswith(f"made from small.gguf ({source})")
    assert (f"its values at {made} cost" in found.words()) is enlarged


def test_an_origin_knows_the_one_before_it() -> None:
    copy = Origin("large.gguf", "b" * 64, "BF16", "Q8_0", MADE.words())
    assert copy.words() == (
        "made from large.gguf (BF16, made from small.gguf (Q4_K_M): its values at BF16 cost)"
    )


def test_a_checksum_is_that_of_the_bytes(file: Path) -> None:
    assert checksum(file) == sha256(b"weights").hexdigest()


def test_a_checksum_is_taken_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = checksum(file)
    monkeypatch.setattr(origins, "sha256_of", lambda path: pytest.fail("read again"))
    assert checksum(file) == first
    link = file.with_name("link.gguf")
    link.symlink_to(file)
    assert checksum(link) == first


def test_another_file_of_that_name_and_size_has_another_checksum(file: Path) -> None:
    first = checksum(file)
    before = file.stat()
    file.write_bytes(b"WEIGHTS")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert checksum(file) == sha256(b"WEIGHTS").hexdigest() != first


def test_a_damaged_memory_costs_time_and_nothing_else(file: Path) -> None:
    first = checksum(file)
    (memory,) = Path(os.environ["HOME"]).rglob("sha256/*")
    for damage in (b"", b"\xff" * 64, b"z" * 64, b"a" * 63):
        memory.write_bytes(damage)
        assert checksum(file) == first
    memory.unlink()
    memory.mkdir()
    assert checksum(file) == first


def test_a_fingerprint_sees_the_size_and_both_ends(file: Path, tmp_path: Path) -> None:
    prints = {fingerprint(file)}
    other = tmp_path / "other.gguf"
    for content in (b"Weights", b"weightS", b"weights!"):
        other.write_bytes(content)
        prints.add(fingerprint(other))
    assert len(prints) == 4
    other.write_bytes(b"weights")
    assert fingerprint(other) in prints
