"""What a GGUF file says about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from specdec_cli.engine.gguf_types import FILE_TYPES

Scalar = int | float | bool | str


@dataclass(frozen=True)
class GGUFHeader:
    """What a file says about itself. None where it says nothing."""

    version: int
    tensor_count: int
    size: int  # bytes of this file, also where the model is split over several
    parameters: int  # elements in this file's tensors
    split_count: int
    vocab_size: int | None
    vocab_digest: str | None  # sha256 of the raw bytes of the token array: equal = same vocabulary
    metadata: Mapping[str, Scalar] = field(repr=False)  # all keys except arrays

    @property
    def architecture(self) -> str | None:
        return self.text("general.architecture")

    @property
    def name(self) -> str | None:
        return self.text("general.name")

    @property
    def file_type(self) -> str | None:
        """The quantisation by its usual name, such as Q4_K_M."""
        code = self.number("general.file_type")
        return None if code is None else FILE_TYPES.get(code, f"type {code}")

    @property
    def context_length(self) -> int | None:
        """The context that the model was trained for, in tokens."""
        return self.number(f"{self.architecture}.context_length")

    @property
    def chat_template(self) -> str | None:
        return self.text("tokenizer.chat_template")

    def text(self, key: str) -> str | None:
        value = self.metadata.get(key)
        return value if isinstance(value, str) else None

    def number(self, key: str) -> int | None:
        value = self.metadata.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None
