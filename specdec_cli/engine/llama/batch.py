"""The rows of one call of `llama_decode`."""

from __future__ import annotations

import ctypes

import llama_cpp
import numpy as np

SEQUENCE = 0  # the one sequence that rows belong to


class Batch:
    """A `llama_batch` over numpy arrays that are filled anew for each call."""

    def __init__(self, size: int) -> None:
        self._tokens = np.zeros(size, dtype=np.int32)
        self._positions = np.zeros(size, dtype=np.int32)
        self._counts = np.ones(size, dtype=np.int32)
        self._sequence = (llama_cpp.llama_seq_id * 1)(SEQUENCE)
        pointer = ctypes.POINTER(llama_cpp.llama_seq_id)
        self._sequences = (pointer * size)(*[ctypes.cast(self._sequence, pointer)] * size)
        self._outputs = np.zeros(size, dtype=np.int8)
        self.struct = llama_cpp.llama_batch(
            n_tokens=0,
            token=self._tokens.ctypes.data_as(ctypes.POINTER(llama_cpp.llama_token)),
            embd=None,
            pos=self._positions.ctypes.data_as(ctypes.POINTER(llama_cpp.llama_pos)),
            n_seq_id=self._counts.ctypes.data_as(ctypes.POINTER(ctypes.c_int32)),
            seq_id=self._sequences,
            logits=self._outputs.ctypes.data_as(ctypes.POINTER(ctypes.c_int8)),
        )

    def fill(self, tokens: list[int], start: int, rows: int) -> None:
        count = len(tokens)
        self.struct.n_tokens = count
        self._tokens[:count] = tokens
        self._positions[:count] = np.arange(start, start + count)
        self._outputs[:count] = 0
        self._outputs[count - rows : count] = 1
