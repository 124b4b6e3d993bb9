"""Reading a GGUF header that nobody vouches for.

Layout (little-endian): magic, version, tensor count, key count; the keys; one record per tensor;
padding up to the alignment; tensor data. Every length in it comes from the file, so none is
trusted: a read past the end or an implausible count is a `ModelFileError`, never a crash.
"""

from __future__ import annotations

import mmap
import struct
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

from specdec_cli.engine.gguf_header import GGUFHeader, Scalar
from specdec_cli.engine.gguf_types import BLOCKS
from specdec_cli.errors import ModelFileError

MAGIC = b"GGUF"
PREFIX = struct.Struct("<4sIQQ")
U32, U64 = struct.Struct("<I"), struct.Struct("<Q")
STRING, ARRAY = 8, 9
SCALARS = {
    code: struct.Struct("<" + letter)
    for code, letter in {
        0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
    }.items()
}  # fmt: skip

# Far above any real model (the largest vocabularies have some 260,000 tokens and twice as many
# merges), low enough that a made-up count costs no noticeable time.
MAX_KEYS = 1 << 16
MAX_TENSORS = 1 << 18
MAX_STRINGS = 1 << 22  # in all string arrays together
MAX_TEXT = 1 << 24  # bytes kept of all other strings together (chat templates are the longest)


def check_start(path: Path, start: bytes, size: int) -> None:
    """Recognise what is not GGUF at all by its first bytes."""
    if not start.startswith(MAGIC[: len(start)]) or not start:
        raise ModelFileError(
            f"{path} is not a GGUF file", why=describe(start), fix="download the model again"
        )
    if len(start) < PREFIX.size:
        raise ModelFileError(
            f"{path} is truncated",
            why=f"the file is {size} bytes, a GGUF header needs at least {PREFIX.size}",
            fix="download the model again",
        )
    _, version, tensors, keys = PREFIX.unpack(start)
    if version not in (2, 3):
        swapped = int.from_bytes(start[4:8], "big")
        if swapped in (2, 3):
            why = "it is big-endian, made for another kind of machine"
        else:
            why = f"it says version {version}; versions 2 and 3 can be read"
        raise ModelFileError(
            f"{path} has an unsupported GGUF format", why=why, fix="get a current GGUF of the model"
        )
    if tensors > MAX_TENSORS or keys > MAX_KEYS:
        raise damaged(path, f"its header claims {tensors} tensors and {keys} keys")


def describe(start: bytes) -> str:
    if not start:
        return "the file is empty"
    shown = start[:16].decode("ascii", "replace").replace("\ufffd", ".").strip()
    shown = "".join(letter if letter.isprintable() else "." for letter in shown)
    if start.lstrip()[:1] == b"<":
        return f'its first bytes are "{shown}": looks like a web page saved by a failed download'
    if start.startswith(b"version https://"):
        return "it is a Git LFS pointer: the model itself was never fetched"
    return f'its first bytes are "{shown}", not "GGUF"'


def damaged(path: Path, why: str) -> ModelFileError:
    return ModelFileError(f"{path} is damaged", why=why, fix="download the model again")


class HeaderReader:
    """One pass over the header of a mapped file, from front to back."""

    def __init__(self, path: Path, data: mmap.mmap, size: int) -> None:
        self.path = path
        self.data = data
        self.size = size
        self.at = PREFIX.size
        self.strings_left = MAX_STRINGS
        self.text_left = MAX_TEXT
        self.vocab_size: int | None = None
        self.vocab_digest: str | None = None

    def read(self) -> GGUFHeader:
        _, version, tensor_count, key_count = PREFIX.unpack_from(self.data)
        try:
            metadata = dict(self.key() for _ in range(key_count))
            values = {key: value for key, value in metadata.items() if value is not None}
            parameters, needed = self.tensors(tensor_count, values.get("general.alignment", 32))
        except (struct.error, OverflowError, IndexError):
            # Whatever a damaged length does to the reader, it ends as a read outside the file.
            raise ModelFileError(
                f"{self.path} is truncated",
                why=f"its header goes on past the end of the file, {self.size} bytes",
                fix="download the model again",
            ) from None
        if needed > self.size:
            raise ModelFileError(
                f"{self.path} is truncated",
                why=f"the file is {self.size} bytes, its header needs {needed}",
                fix="download the model again",
            )
        split = values.get("split.count", 1)
        return GGUFHeader(
            version=version,
            tensor_count=tensor_count,
            size=self.size,
            parameters=parameters,
            split_count=split if isinstance(split, int) else 1,
            vocab_size=self.vocab_size,
            vocab_digest=self.vocab_digest,
            metadata=MappingProxyType(values),
        )

    def number(self, layout: struct.Struct) -> int:
        (value,) = layout.unpack_from(self.data, self.at)
        self.at += layout.size
        return int(value)

    def skip_text(self) -> int:
        """Step over a string; returns where it starts."""
        length = self.number(U64)
        start, self.at = self.at, self.at + length
        if self.at > self.size:
            raise IndexError
        return start

    def text(self) -> str:
        start = self.skip_text()
        self.text_left -= self.at - start
        if self.text_left < 0:
            raise damaged(self.path, f"its header has more than {MAX_TEXT} bytes of text")
        return self.data[start : self.at].decode("utf-8", "replace")

    def key(self) -> tuple[str, Scalar | None]:
        name = self.text()
        kind = self.number(U32)
        if kind == ARRAY:
            self.array(name)
            return name, None
        if kind == STRING:
            return name, self.text()
        layout = self.scalar(kind)
        (value,) = layout.unpack_from(self.data, self.at)
        self.at += layout.size
        return name, value

    def scalar(self, kind: int) -> struct.Struct:
        if kind not in SCALARS:
            raise damaged(self.path, f"its header has a value of unknown type {kind}")
        return SCALARS[kind]

    def array(self, name: str) -> None:
        """Step over an array; of the token array, keep the length and a digest."""
        kind, count = self.number(U32), self.number(U64)
        start = self.at
        if kind != STRING:
            self.at += count * self.scalar(kind).size
            if self.at > self.size:
                raise IndexError
            return
        self.strings_left -= count
        if self.strings_left < 0:
            raise damaged(self.path, f"its header claims a list of {count} strings")
        # The one hot loop: 150,000 tokens and as many merges, so no string is ever built.
        unpack, data, at = U64.unpack_from, self.data, self.at
        for _ in range(count):
            at += 8 + unpack(data, at)[0]
        self.at = at
        if at > self.size:
            raise IndexError
        if name == "tokenizer.ggml.tokens":
            self.vocab_size = count
            self.vocab_digest = sha256(self.data[start:at]).hexdigest()

    def tensors(self, count: int, alignment: Scalar) -> tuple[int, int]:
        """Elements of all tensors, and the size that the file must have at least."""
        if not isinstance(alignment, int) or alignment <= 0 or alignment & (alignment - 1):
            raise damaged(self.path, f"its header asks for an alignment of {alignment}")
        parameters = end = 0
        for _ in range(count):
            self.skip_text()
            dimensions = self.number(U32)
            if dimensions > 4:
                raise damaged(self.path, f"its header has a tensor of {dimensions} dimensions")
            elements = 1
            for _ in range(dimensions):
                elements *= self.number(U64)
            per_block, block_bytes = BLOCKS.get(
                self.number(U32), (1, 0)
            )  # newer type: size unknown
            offset = self.number(U64)
            parameters += elements
            end = max(end, offset + elements // per_block * block_bytes)
        start = -(-self.at // alignment) * alignment
        return parameters, start + end if count else self.at
