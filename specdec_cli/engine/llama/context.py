"""A llama.cpp context as a `LanguageModel`: the KV cache is the memo of a pure function."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import llama_cpp
import numpy as np
import numpy.typing as npt

from specdec_cli.engine.language_model import Interrupted, Logits
from specdec_cli.engine.llama import library
from specdec_cli.engine.llama.batch import SEQUENCE, Batch
from specdec_cli.engine.llama.model import LlamaModel
from specdec_cli.errors import EvaluationError, OutOfMemory

PASSING = 1  # a second sequence: holds a part of the first while it is passed on
FLASH_ATTENTION = {"auto": -1, "off": 0, "on": 1}


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """How to evaluate: `size` tokens at most, `batch` rows a call, up to `rows` rows of logits.

    With `pairs`, no call evaluates or outputs a single row (see `numerics`): a row that would
    stand alone is evaluated together with the one before it, once more.
    """

    size: int
    batch: int = 512
    rows: int = 1
    threads: int = 1
    flash_attention: str = "auto"
    pairs: bool = False


class LlamaContext:
    """One sequence of one model.

    `stop` is asked between the nodes of the compute graph; where it says yes, the running
    evaluation ends at once with `Interrupted`.

    Attributes:
        transposes_values: its cache holds values transposed, as they are without flash attention.

    Raises:
        OutOfMemory: llama.cpp could not create the context.
    """

    def __init__(
        self,
        model: LlamaModel,
        options: ContextOptions,
        *,
        stop: Callable[[], bool] | None = None,
    ) -> None:
        self.context_size = options.size  # llama.cpp pads its own figure; ours is the limit
        self.vocab_size = model.vocabulary.size
        self.can_roll_back = not model.recurrent
        self.transposes_values = options.flash_attention == "off"
        self._least = 2 if options.pairs else 1
        rows = self._rows_read = max(options.rows, self._least)
        self._batch_size = max(options.batch, rows + 2)  # no chunk of a prompt is a single row
        self._evaluated: list[int] = []

        params = llama_cpp.llama_context_default_params()
        params.n_ctx = options.size
        params.n_batch = params.n_ubatch = self._batch_size
        if self.can_roll_back:  # what cannot be cut back cannot be cut out either
            params.n_seq_max, params.kv_unified = PASSING + 1, True
        # Room for the rows that are read and no more: 300 MiB less for a vocabulary of 150,000.
        params.n_outputs_max = params.n_outputs_max_per_seq = max(rows, params.n_seq_max)
        params.n_threads = params.n_threads_batch = options.threads
        params.flash_attn_type = FLASH_ATTENTION[options.flash_attention]
        params.swa_full = True  # a sliding window's cache cannot roll back otherwise
        self._abort = llama_cpp.ggml_abort_callback(lambda _data: stop is not None and stop())
        params.abort_callback = self._abort
        library.clear_log()
        self._handle = llama_cpp.llama_init_from_model(model.handle, params)
        if not self._handle:
            raise OutOfMemory(
                f"no context of {options.size} tokens for {model.path.name}",
                why=library.last_error() or "llama.cpp gave no reason",
                fix="use a smaller -c",
            )
        self._memory = llama_cpp.llama_get_memory(self._handle)
        self._batch = Batch(self._batch_size)

    def close(self) -> None:
        if self._handle:
            llama_cpp.llama_free(self._handle)
            self._handle = None

    def forget(self) -> None:
        self._evaluated = []
        llama_cpp.llama_memory_clear(self._memory, True)

    def cached(self, tokens: Sequence[int]) -> int:
        return common_prefix(self._evaluated, list(tokens))

    @property
    def memo(self) -> list[int]:
        """The tokens that need not be read again."""
        return list(self._evaluated)

    def state(self) -> npt.NDArray[np.uint8]:
        """The memo's keys and values (or recurrent state), as llama.cpp writes them."""
        self._keep(len(self._evaluated))  # not the cells of an evaluation that was interrupted
        return self._state(SEQUENCE)

    def restore(self, memo: Sequence[int], state: npt.NDArray[np.uint8]) -> bool:
        """Take over a memo and its `state`, from a context with the same model and options.

        llama.cpp trusts what it reads: check that these are the bytes that were written.

        Returns:
            False where llama.cpp refuses the state; the memo is empty then.
        """
        self.forget()
        if not llama_cpp.llama_state_seq_set_data(
            self._handle, _bytes(state), len(state), SEQUENCE
        ):
            self.forget()
            return False
        self._evaluated = list(memo)
        return True

    def part(self, start: int, end: int) -> npt.NDArray[np.uint8]:
        """The keys and values of the memo's tokens from `start` to before `end`."""
        self._keep(len(self._evaluated))
        llama_cpp.llama_memory_seq_cp(self._memory, SEQUENCE, PASSING, start, end)
        part = self._state(PASSING)
        llama_cpp.llama_memory_seq_rm(self._memory, PASSING, -1, -1)
        return part

    def adopt(self, tokens: Sequence[int], start: int, part: npt.NDArray[np.uint8]) -> bool:
        """Take over the keys and values of `tokens` from `start` on; the memo holds those before.

        Args:
            part: from a context whose cache has the same shape.

        Returns:
            False where llama.cpp refuses it; the memo then ends at `start`.
        """
        self._keep(start)
        size = len(part)
        if not llama_cpp.llama_state_seq_set_data(self._handle, _bytes(part), size, PASSING):
            return False
        llama_cpp.llama_memory_seq_cp(self._memory, PASSING, SEQUENCE, -1, -1)
        llama_cpp.llama_memory_seq_rm(self._memory, PASSING, -1, -1)
        self._evaluated = list(tokens)
        return True

    def logits(self, tokens: Sequence[int], *, last: int) -> Logits:
        tokens = list(tokens)
        if len(tokens) > self.context_size:
            raise EvaluationError(
                "the context is full",
                why=f"{len(tokens)} tokens, room for {self.context_size}",
                fix="use a larger -c",
            )
        read = max(last, self._least)
        if read > self._rows_read:  # llama.cpp would end the process
            raise EvaluationError(
                f"{read} rows of logits are more than the {self._rows_read} there is room for",
                why="the context was created for fewer guesses",
                fix="load with a larger -k",
            )
        if len(tokens) < read:
            return self._padded(tokens)
        done = self._keep(min(self.cached(tokens), len(tokens) - read))
        while (left := len(tokens) - done) > self._batch_size:
            size = min(self._batch_size, left - read)  # all read rows belong to one evaluation
            self._evaluate(tokens[done : done + size], done, rows=0)
            done += size
        self._evaluate(tokens[done:], done, rows=read)
        return self._rows(read)[read - last :]

    def _state(self, sequence: int) -> npt.NDArray[np.uint8]:
        size = llama_cpp.llama_state_seq_get_size(self._handle, sequence)
        state = np.empty(size, dtype=np.uint8)
        written = llama_cpp.llama_state_seq_get_data(self._handle, _bytes(state), size, sequence)
        return state[:written]

    def _padded(self, tokens: list[int]) -> Logits:
        """A text of one token, evaluated with a second row that is dropped again."""
        self._keep(0)
        self._evaluate([*tokens, *tokens], 0, rows=2)
        self._evaluated.pop()  # the next call drops the cell
        return self._rows(2)[:1]

    def _rows(self, count: int) -> Logits:
        return np.ctypeslib.as_array(
            llama_cpp.llama_get_logits(self._handle), shape=(count, self.vocab_size)
        )

    def _keep(self, count: int) -> int:
        """Drop all but the first `count` tokens from the memo; how many are left.

        Asked for even where the memo ends there: an interrupted evaluation leaves cells behind.
        """
        if not llama_cpp.llama_memory_seq_rm(self._memory, SEQUENCE, count, -1):
            self.can_roll_back = False
            self.forget()
            return 0
        self._evaluated = self._evaluated[:count]
        return count

    def _evaluate(self, tokens: list[int], start: int, *, rows: int) -> None:
        self._batch.fill(tokens, start, rows)
        code = llama_cpp.llama_decode(self._handle, self._batch.struct)
        if code == 2:
            raise Interrupted
        if code != 0:
            raise EvaluationError(
                f"llama.cpp could not evaluate {len(tokens)} tokens at position {start}",
                why="no free cell in the KV cache" if code == 1 else f"llama_decode gave {code}",
                fix="use a smaller -b or a larger -c; specdec run -v shows llama.cpp's log",
            )
        self._evaluated += tokens  # only now: a failure above leaves the memo true


def _bytes(state: npt.NDArray[np.uint8]) -> Any:
    return state.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))


def common_prefix(left: list[int], right: list[int]) -> int:
    """Length of the longest common prefix, by halving slices: compares at C speed."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
