"""The header check that stands between a file and the C code."""

from __future__ import annotations

import struct
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_gguf import VOCABULARY, make_gguf, text

from specdec_cli.engine.gguf import read_header
from specdec_cli.engine.gguf_header import GGUFHeader
from specdec_cli.errors import ModelFileError

GOOD = make_gguf(keys={"general.name": "Tiny", "general.file_type": 15})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.gguf"


def refusal(path: Path, data: bytes) -> ModelFileError:
    path.write_bytes(data)
    with pytest.raises(ModelFileError) as caught:
        read_header(path)
    error = caught.value
    for line in (error.message, error.why, error.fix):
        assert line
        assert "\n" not in line
        assert not line.endswith(".")
    return error


def test_a_good_file(path):
    path.write_bytes(GOOD)
    header = read_header(path)
    tokens = b"".join(map(text, VOCABULARY))
    assert header == GGUFHeader(
        version=3,
        tensor_count=1,
        size=len(GOOD),
        parameters=1024,
        split_count=1,
        vocab_size=4,
        vocab_digest=sha256(tokens).hexdigest(),
        metadata=header.metadata,
    )
    assert (header.architecture, header.name, header.file_type) == ("llama", "Tiny", "Q4_K_M")
    assert header.context_length == 256
    assert header.chat_template is None


def test_the_reference_writer_is_understood(path):
    import gguf
    import numpy as np

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("Reference")
    writer.add_file_type(7)
    writer.add_context_length(512)
    writer.add_chat_template("{{ messages }}")
    writer.add_token_list([f"token {n}" for n in range(300)])
    writer.add_token_scores([0.5] * 300)
    writer.add_token_types([1] * 300)
    writer.add_tensor("a", np.ones((64, 32), np.float32))
    quants = np.zeros((4, 34), np.uint8)
    writer.add_tensor("b", quants, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    header = read_header(path)
    assert (header.name, header.file_type, header.vocab_size) == ("Reference", "Q8_0", 300)
    assert header.parameters == 64 * 32 + 4 * 32
    assert header.chat_template == "{{ messages }}"
    data = path.read_bytes()
    assert "truncated" in refusal(path, data[: len(data) - 64]).message


def test_block_sizes_are_those_of_the_reference():
    import gguf

    from specdec_cli.engine.gguf_types import BLOCKS

    for kind, sizes in gguf.GGML_QUANT_SIZES.items():
        if kind.name != "Q8_1":  # 36 bytes in llama.cpp, 40 in its Python package; never in files
            assert BLOCKS.get(int(kind), sizes) == sizes, kind


def test_a_missing_file(tmp_path):
    with pytest.raises(ModelFileError, match="no model file at"):
        read_header(tmp_path / "gone.gguf")


def test_a_directory(tmp_path):
    with pytest.raises(ModelFileError, match="is a directory"):
        read_header(tmp_path)


def test_a_file_the_system_will_not_open(path, monkeypatch):
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ModelFileError, match="cannot read") as caught:
        read_header(path)
    assert caught.value.why == "Permission denied"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "the file is empty"),
        (b"<!DOCTYPE html><html>", "web page saved by a failed download"),
        (b'first bytes: {"error"', 'first bytes are "first bytes: {"e"'),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b"\x00\xff\x1b[2J" + bytes(40), 'not "GGUF"'),
        (b"GG", "needs at least 24"),
        (b"GGUF\x03\x00\x00\x00\x00\x00", "10 bytes"),
        (b"GGUF" + struct.pack(">IQQ", 3, 1, 1), "big-endian"),
        (b"GGUF" + struct.pack("<IQQ", 1, 1, 1), "version 1"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 1), "claims"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1, 1 << 60), "claims"),
    ],
)
def test_what_is_not_a_model(path, data, why):
    assert why in refusal(path, data).why


def test_a_truncated_file_says_both_sizes(path):
    error = refusal(path, GOOD[:-1])
    assert error.why == f"the file is {len(GOOD) - 1} bytes, its header needs {len(GOOD)}"


def key(name: str, kind: int, value: bytes) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text(name) + struct.pack("<I", kind) + value


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (key("x", 99, b""), "unknown type 99"),
        (key("x", 9, struct.pack("<IQ", 9, 1)), "unknown type 9"),
        (key("x", 9, struct.pack("<IQ", 8, 1 << 60)), "list of"),
        (key("x", 9, struct.pack("<IQ", 4, 1 << 60)), "past the end"),
        (key("x", 8, struct.pack("<Q", (1 << 64) - 1)), "past the end"),
        (key("x", 9, struct.pack("<IQQQ", 8, 2, (1 << 64) - 1, 0)), "past the end"),
        (key("general.alignment", 4, struct.pack("<I", 3)), "alignment of 3"),
        (key("general.alignment", 4, struct.pack("<I", 0)), "alignment of 0"),
    ],
)
def test_lengths_are_not_believed(path, data, why):
    assert why in refusal(path, data).why


def test_a_split_model_needs_all_its_parts(tmp_path):
    data = make_gguf(keys={"split.count": 2})
    first = tmp_path / "m-00001-of-00002.gguf"
    first.write_bytes(data)
    with pytest.raises(ModelFileError, match=r"m-00002-of-00002\.gguf is missing"):
        read_header(first)
    (tmp_path / "m-00002-of-00002.gguf").write_bytes(data)
    assert read_header(first).split_count == 2


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damage_is_an_error_or_goes_unseen_and_never_a_crash(tmp_path_factory, data):
    content = bytearray(GOOD[: data.draw(st.integers(0, len(GOOD)))])
    header_end = len(GOOD) - 4096  # what follows are weights: any bytes are good there
    for _ in range(data.draw(st.integers(0, 6))):
        if content:
            at = data.draw(st.integers(0, min(len(content), header_end) - 1))
            content[at] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "fuzzed.gguf"
    path.write_bytes(content)
    try:
        header = read_header(path)
    except ModelFileError:
        return
    assert isinstance(header.architecture, str | None)
    assert isinstance(header.file_type, str | None)
    assert isinstance(header.chat_template, str | None)
