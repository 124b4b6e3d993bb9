"""Another precision of a model, by llama.cpp's quantiser, and the note on where it came from."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest
from gguf import GGUFReader
from gguf_files import FIRST_PIECE, PIECES, write_tiny

from specdec_cli.app.make_draft import make
from specdec_cli.engine.gguf import read_header
from specdec_cli.engine.llama.context import ContextOptions, LlamaContext
from specdec_cli.engine.llama.model import LlamaModel
from specdec_cli.engine.llama.quantize import TYPES, quantize
from specdec_cli.errors import ModelFileError, UsageError
from specdec_cli.models.origins import Origin, origin

WORDS = tuple(f" w{i}" for i in range(8))
FIRST_WORD = FIRST_PIECE + len(PIECES)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_tiny(tmp_path / "tiny.gguf", script=WORDS)


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """A disk that is full after so many bytes of a file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("type", TYPES)
def test_a_copy_has_the_type_and_says_the_same(source: Path, type: str, pure: bool) -> None:
    output = source.with_name(f"copy {type} é.gguf")
    quantize(source, output, type, pure=pure)
    if pure:
        matrices = [tensor for tensor in GGUFReader(output).tensors if len(tensor.shape) > 1]
        assert {tensor.tensor_type.name for tensor in matrices} == {type}
    header = read_header(output)
    assert header.file_type == type
    assert header.vocab_digest == read_header(source).vocab_digest
    assert output.stat().st_size < source.stat().st_size  # which is F32
    said = []
    for path in (source, output):
        model = LlamaModel(path)
        context = LlamaContext(model, ContextOptions(size=64))
        try:
            said.append(int(context.logits([1, FIRST_WORD], last=1)[0].argmax()))
        finally:
            context.close()
            model.close()
    assert said == [FIRST_WORD + 1] * 2


def test_an_origin_is_recorded_and_carried_on(source: Path) -> None:
    large, small = source.with_name("large.gguf"), source.with_name("small.gguf")
    first = make(source, large, "BF16")
    assert first == origin(large)
    digest = sha256(source.read_bytes()).hexdigest()
    assert first == Origin("tiny.gguf", digest, "unknown", "BF16")
    second = make(large, small, "Q4_0")
    assert second.source_type == "BF16"
    assert "large.gguf (BF16, made from tiny.gguf" in second.words()


def test_a_copy_replaces_an_older_one(source: Path) -> None:
    output = source.with_name("copy.gguf")
    make(source, output, "Q4_0")
    make(source, output, "Q8_0")
    assert read_header(output).file_type == "Q8_0"
    found = origin(output)
    assert found is not None
    assert found.type == "Q8_0"


def test_a_full_disk_leaves_no_half_file_and_the_old_one_whole(source: Path) -> None:
    output = source.with_name("copy.gguf")
    with files_of_at_most(50_000), pytest.raises(ModelFileError) as caught:
        make(source, output, "BF16")
    assert caught.value.why
    assert [path.name for path in source.parent.iterdir() if path.is_file()] == ["tiny.gguf"]
    make(source, output, "Q4_0")
    old = output.read_bytes()
    with files_of_at_most(50_000), pytest.raises(ModelFileError):
        make(source, output, "BF16")
    assert output.read_bytes() == old
    found = origin(output)
    assert found is not None
    assert found.type == "Q4_0"


def test_without_a_note_on_its_origin_there_is_no_copy(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, origin: Origin) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("specdec_cli.app.make_draft.record", full)
    with pytest.raises(ModelFileError, match="note on its origin"):
        make(source, source.with_name("copy.gguf"), "BF16")
    assert not source.with_name("copy.gguf").exists()


def test_a_model_is_never_made_from_itself(source: Path) -> None:
    before = source.read_bytes()
    link = source.with_name("link.gguf")
    link.symlink_to(source)
    for output in (source, link):
        with pytest.raises(UsageError, match="from itself"):
            make(source, output, "Q4_0")
    assert source.read_bytes() == before


@pytest.mark.parametrize("place", ["missing/copy.gguf", "here"])
def test_a_place_that_cannot_be_written_is_a_plain_error(source: Path, place: str) -> None:
    with pytest.raises(ModelFileError, match="could not make"):
        make(source, source.parent / place, "Q4_0")
    assert not list(source.parent.glob("*.part"))


def test_a_damaged_source_is_found_before_the_quantiser_sees_it(source: Path) -> None:
    source.write_bytes(source.read_bytes()[:-100])
    with pytest.raises(ModelFileError, match="truncated"):
        make(source, source.with_name("copy.gguf"), "Q4_0")
