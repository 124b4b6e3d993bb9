"""Small GGUF files, written byte by byte."""

from __future__ import annotations

import struct

VOCABULARY = ("<s>", "</s>", "the", "cat")


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def number(value: int) -> bytes:
    return struct.pack("<II", 4, value)


def make_gguf(
    *,
    vocabulary: tuple[str, ...] = VOCABULARY,
    elements: int = 1024,
    keys: dict[str, int | str] | None = None,
    version: int = 3,
) -> bytes:
    """A valid GGUF with one F32 tensor of `elements` elements."""
    written = {"general.architecture": "llama", "llama.context_length": 256, **(keys or {})}
    body = b""
    for name, value in written.items():
        body += text(name)
        body += struct.pack("<I", 8) + text(value) if isinstance(value, str) else number(value)
    tokens = b"".join(map(text, vocabulary))
    body += text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, len(vocabulary)) + tokens
    body += text("output.weight") + struct.pack("<IQIQ", 1, elements, 0, 0)
    header = struct.pack("<4sIQQ", b"GGUF", version, 1, len(written) + 1) + body
    padding = -len(header) % 32
    return header + bytes(padding) + bytes(n % 251 for n in range(elements)) * 4
