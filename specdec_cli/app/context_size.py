"""How many tokens a target and its drafts have room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import psutil

from specdec_cli.engine.llama.model import LlamaModel
from specdec_cli.errors import OutOfMemory

DEFAULT_CONTEXT = 8192


@dataclass(frozen=True, slots=True)
class Room:
    """A size in tokens, and what a person should know about it, or may like to."""

    size: int
    notices: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def fitting(wanted: int | None, models: Sequence[LlamaModel]) -> Room:
    """The size asked for, or the target's own within DEFAULT_CONTEXT and half the free memory.

    Args:
        wanted: tokens; None leaves the choice.
        models: the target first, then its drafts: each keeps the whole text.

    Raises:
        OutOfMemory: the size asked for cannot be held.
    """
    per_token = sum(model.cache_bytes_per_token for model in models)
    free = int(psutil.virtual_memory().available)
    trained = models[0].trained_context or DEFAULT_CONTEXT
    if wanted is None:
        held = max(256, free // 2 // max(1, per_token) // 256 * 256)
        size = min(trained, DEFAULT_CONTEXT, held)
        if size == trained:
            return Room(size)
        said = f"context {size} of the model's {trained} tokens ({{}}; -c changes it)"
        if size == held:
            return Room(size, notices=(said.format("free memory"),))
        return Room(size, remarks=(said.format("the default limit"),))
    if wanted * per_token > free:
        raise OutOfMemory(
            f"no memory for a context of {wanted} tokens",
            why=f"it needs {gib(wanted * per_token)}, {gib(free)} are free",
            fix=f"use -c {max(256, free // 2 // per_token // 256 * 256)} or less",
        )
    if wanted > trained:
        more = f"context {wanted} is more than the {trained} tokens the model was trained for"
        return Room(wanted, notices=(more,))
    return Room(wanted)


def gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
