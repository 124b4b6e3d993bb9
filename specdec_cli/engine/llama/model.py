"""A GGUF file loaded by llama.cpp: its weights and its vocabulary."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import llama_cpp

from specdec_cli.engine.gguf import read_header
from specdec_cli.engine.llama import extra_kernels, library
from specdec_cli.errors import ModelFileError

ALL_LAYERS = -1


class LlamaModel:
    """Weights and vocabulary of one model file, shared by any number of contexts.

    Attributes:
        crippled: loaded without the extra kernels, because this build crashes in them.

    Raises:
        ModelFileError: the file is missing, damaged, or of a kind that llama.cpp cannot run.
    """

    def __init__(
        self,
        path: Path,
        *,
        gpu_layers: int = ALL_LAYERS,
        repacked: bool = True,
        on_progress: Callable[[float], None] | None = None,
    ) -> None:
        library.start()
        read_header(path)  # a damaged file must be an error here, not a crash in C code
        self.path = path

        # A reference must outlive the load, or ctypes frees the callback under llama.cpp's feet.
        @llama_cpp.llama_progress_callback
        def progressed(share: float, _user_data: ctypes.c_void_p) -> bool:
            if on_progress is not None:
                on_progress(share)
            return True

        params = llama_cpp.llama_model_default_params()
        params.n_gpu_layers = gpu_layers
        self.crippled = repacked and not extra_kernels.usable(path)
        params.use_extra_bufts = repacked and not self.crippled
        params.progress_callback = progressed
        library.clear_log()
        self.handle = llama_cpp.llama_model_load_from_file(str(path).encode(), params)
        if not self.handle:
            raise ModelFileError(
                f"llama.cpp cannot load {path.name}",
                why=library.last_error() or "it gave no reason",
                fix="specdec run -v shows its log; the file may be damaged or too new",
            )
        if not llama_cpp.llama_model_has_decoder(self.handle):
            self.close()
            raise ModelFileError(
                f"{path.name} is not a text generation model",
                why="it has no decoder",
                fix="choose a causal language model",
            )
        self.vocabulary = LlamaVocabulary(self.handle)

    def close(self) -> None:
        if self.handle:
            llama_cpp.llama_model_free(self.handle)
            self.handle = None

    @cached_property
    def description(self) -> str:
        """As llama.cpp words it, for example `qwen2 1.5B Q4_K - Medium`."""
        buffer = ctypes.create_string_buffer(256)
        llama_cpp.llama_model_desc(self.handle, buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace")

    @cached_property
    def trained_context(self) -> int:
        return int(llama_cpp.llama_model_n_ctx_train(self.handle))

    @cached_property
    def parameters(self) -> int:
        return int(llama_cpp.llama_model_n_params(self.handle))

    @cached_property
    def size(self) -> int:
        """Bytes of all tensors."""
        return int(llama_cpp.llama_model_size(self.handle))

    @cached_property
    def recurrent(self) -> bool:
        """Does it keep a state that cannot be cut back to an earlier token?"""
        return bool(
            llama_cpp.llama_model_is_recurrent(self.handle)
            or llama_cpp.llama_model_is_hybrid(self.handle)
        )

    @cached_property
    def cache_bytes_per_token(self) -> int:
        """Size of one token's keys and values at 16 bits, from the model's own figures."""
        heads = int(llama_cpp.llama_model_n_head_kv(self.handle))
        width = self.n_embd // max(1, int(llama_cpp.llama_model_n_head(self.handle)))
        key = int(self.metadata("attention.key_length") or width)
        value = int(self.metadata("attention.value_length") or width)
        return int(llama_cpp.llama_model_n_layer(self.handle)) * heads * (key + value) * 2

    @property
    def n_embd(self) -> int:
        return int(llama_cpp.llama_model_n_embd(self.handle))

    @cached_property
    def architecture(self) -> str:
        return self._value("general.architecture") or "unknown"

    @cached_property
    def chat_template(self) -> str | None:
        text = llama_cpp.llama_model_chat_template(self.handle, None)
        return text.decode("utf-8", "replace") if text else None

    def metadata(self, key: str) -> str | None:
        """A value of the file's own section, named without the architecture's prefix."""
        return self._value(f"{self.architecture}.{key}")

    def _value(self, key: str) -> str | None:
        buffer = ctypes.create_string_buffer(256)
        size = llama_cpp.llama_model_meta_val_str(self.handle, key.encode(), buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace") if size >= 0 else None


class LlamaVocabulary:
    """Token ids <-> bytes, by llama.cpp's tokenizer."""

    def __init__(self, model: int) -> None:
        self._handle = llama_cpp.llama_model_get_vocab(model)
        self.size = int(llama_cpp.llama_vocab_n_tokens(self._handle))
        self._pieces: dict[int, bytes] = {}

    @cached_property
    def ends(self) -> frozenset[int]:
        is_end = llama_cpp.llama_vocab_is_eog
        return frozenset(token for token in range(self.size) if is_end(self._handle, token))

    @cached_property
    def texts(self) -> list[bytes]:
        """Every token as the file spells it, by id."""
        text = llama_cpp.llama_vocab_get_text
        return [text(self._handle, token) or b"" for token in range(self.size)]

    @property
    def kind(self) -> int:
        """llama.cpp's vocabulary type: SPM, BPE, WPM, UGM, ..."""
        return int(llama_cpp.llama_vocab_type(self._handle))

    @property
    def bos(self) -> int:
        return int(llama_cpp.llama_vocab_bos(self._handle))

    @property
    def eos(self) -> int:
        return int(llama_cpp.llama_vocab_eos(self._handle))

    @property
    def adds_bos(self) -> bool:
        return bool(llama_cpp.llama_vocab_get_add_bos(self._handle))

    def text(self, token: int) -> str:
        """A token as the file spells it; empty where the model has no such token (-1)."""
        return self.texts[token].decode("utf-8", "replace") if 0 <= token < self.size else ""

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        data = text.encode("utf-8", "replace")
        room = len(data) + 8
        while True:
            ids = (llama_cpp.llama_token * room)()
            count = llama_cpp.llama_tokenize(
                self._handle, data, len(data), ids, room, False, special
            )
            if count >= 0:
                return list(ids[:count])
            room = -count

    def piece(self, token: int) -> bytes:
        if token not in self._pieces:
            self._pieces[token] = self._read_piece(token, special=False)
        return self._pieces[token]

    def spelling(self, token: int) -> bytes:
        return self.piece(token) or self._read_piece(token, special=True)

    def _read_piece(self, token: int, *, special: bool) -> bytes:
        room = 64
        while True:
            buffer = ctypes.create_string_buffer(room)
            size = llama_cpp.llama_token_to_piece(self._handle, token, buffer, room, 0, special)
            if size >= 0:
                return buffer.raw[:size]
            room = -size
