"""What a context has read, as a file.

A line that names the format, the length of a JSON head (8 bytes, little endian), the head, the
tokens (4 bytes each), llama.cpp's bytes. The head holds the conditions under which the state means
something, and a checksum over them, the tokens and llama.cpp's bytes.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from specdec_cli.engine.llama.context import LlamaContext

MAGIC = b"specdec-state/1\n"
LARGEST_HEAD = 1 << 20


class Corrupt(ValueError):
    """In words, what is wrong with the file."""


@dataclass(frozen=True, slots=True)
class Head:
    """What a file says about itself; nothing of it is checked yet.

    Attributes:
        conditions: everything that shapes the state, fit for JSON.
        memo: the tokens that were read.
        start: where llama.cpp's bytes begin.
    """

    conditions: dict[str, Any]
    memo: list[int]
    checksum: str
    start: int
    size: int


def write(path: Path, context: LlamaContext, conditions: Mapping[str, Any]) -> None:
    """Put the context's memo into a file, whole or not at all.

    Raises:
        OSError: no space, or no permission.
    """
    state, memo = context.state(), np.array(context.memo, dtype="<i4")
    head = {
        "conditions": conditions,
        "tokens": len(memo),
        "size": len(state),
        "sha256": _checksum(conditions, memo, state),
    }
    text = json.dumps(head).encode()
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with part.open("xb") as file:
            file.write(MAGIC + len(text).to_bytes(8, "little") + text)
            file.write(memo.data)
            file.write(state.data)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def read_head(path: Path) -> Head:
    """Raises:
    Corrupt: not such a file, or not a whole one.
    OSError: it cannot be read.
    """
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise Corrupt("it is of another format")
        length = int.from_bytes(file.read(8), "little")
        if length > LARGEST_HEAD:
            raise Corrupt("its head is too long")
        try:
            head = json.loads(file.read(length))
            count, size = int(head["tokens"]), int(head["size"])
            conditions, checksum = dict(head["conditions"]), str(head["sha256"])
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise Corrupt("its head is unreadable") from error
        start = file.tell() + 4 * count
        if count < 0 or size < 0 or start + size != os.fstat(file.fileno()).st_size:
            raise Corrupt("its size is not what its head says")
        memo = [int(token) for token in np.frombuffer(file.read(4 * count), dtype="<i4")]
    return Head(conditions, memo, checksum, start, size)


def restore(path: Path, head: Head, context: LlamaContext) -> None:
    """Give a context the memo of a file that was made under its own conditions.

    Raises:
        Corrupt: the bytes are not those that were written, or llama.cpp refuses them; in the
            second case the context's memo is empty, else it is as it was.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        state = _read(file, head.start, head.size)
    memo = np.array(head.memo, dtype="<i4")
    if _checksum(head.conditions, memo, state) != head.checksum:
        raise Corrupt("its checksum is wrong")
    if not context.restore(head.memo, state):
        raise Corrupt("llama.cpp does not take it")


def _read(file: BinaryIO, start: int, size: int) -> npt.NDArray[np.uint8]:
    state = np.empty(size, dtype=np.uint8)
    file.seek(start)
    if file.readinto(state.data) != size:  # type: ignore[attr-defined]
        raise Corrupt("it became shorter")
    return state


def _checksum(
    conditions: Mapping[str, Any], memo: npt.NDArray[Any], state: npt.NDArray[np.uint8]
) -> str:
    digest = sha256(json.dumps(conditions, sort_keys=True).encode())
    digest.update(memo.data)
    digest.update(state.data)
    return digest.hexdigest()
