"""How llama.cpp writes a sequence's keys and values, as far as passing them on needs it.

Without flash attention it keeps values transposed, and takes no others. The layout, of version
0.5.0 (llama-kv-cache.cpp, `state_write`): a mark, the sequence, streams, cells; of each cell its
position, the number of its sequences and their ids; whether values are transposed, layers; of each
layer the keys' type, bytes a cell, keys; of each layer the values' type, bytes a cell, values, or
transposed their type, bytes an element, elements a cell, values. All integers have four bytes but
the bytes a cell: eight.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

State = npt.NDArray[np.uint8]

CELL = 12  # bytes: one position, one sequence
ELEMENTS = {0: 4, 1: 2, 30: 2}  # bytes of F32, F16 and BF16: what is not in blocks


def transposed(state: State) -> State:
    """The same with its values transposed.

    What is transposed already or laid out in another way is returned as it is.
    """
    _, _, streams, cells = _integers(state, 0, 4)
    at = 16 + CELL * cells
    if streams != 1 or len(state) < at + 8:
        return state
    already, layers = _integers(state, at, 2)
    if already != 0:
        return state
    values = at + 8
    for _ in range(layers):  # over the keys
        if len(state) < values + 12:
            return state
        values += 12 + cells * _integers(state, values + 4, 1)[0]
    parts = [state[:values]]
    for _ in range(layers):
        if len(state) < values + 12:
            return state
        kind, row, high = _integers(state, values, 3)
        end = values + 12 + cells * row
        if kind not in ELEMENTS or high != 0 or len(state) < end:
            return state
        size = ELEMENTS[kind]
        width = row // size
        parts.append(np.array([kind, size, width], dtype="<u4").view(np.uint8))
        block = state[values + 12 : end].reshape(cells, width, size)
        parts.append(block.transpose(1, 0, 2).reshape(-1))
        values = end
    if values != len(state):
        return state
    turned = np.concatenate(parts)
    turned[at : at + 4] = (1, 0, 0, 0)
    return turned


def _integers(state: State, at: int, count: int) -> list[int]:
    return [int(value) for value in state[at : at + 4 * count].view("<u4")]
