"""Which of a draft's tokens mean something to the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from specdec_cli.core.distribution import Ids
from specdec_cli.errors import IncompatibleModels

MAX_DIFFERENCE = 128  # in size, as llama.cpp allows; also in tokens that differ


class TokenTable(Protocol):
    """What has to agree between two vocabularies."""

    @property
    def kind(self) -> int: ...
    @property
    def bos(self) -> int: ...
    @property
    def adds_bos(self) -> bool: ...
    @property
    def texts(self) -> list[bytes]: ...
    def text(self, token: int) -> str: ...
    def piece(self, token: int) -> bytes: ...


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """A draft's vocabulary against the target's.

    Attributes:
        same: the ids mean the same, except those in `differing`, which are never drafted.
        differing: ids within both vocabularies whose texts differ, ascending.
        difference: the first thing that tells the two apart, in words; empty where nothing does.
    """

    same: bool
    differing: Ids
    difference: str


def match(target: TokenTable, draft: TokenTable) -> Match:
    """Compare kind, begin-of-text, sizes and the text of every token."""
    differing = np.flatnonzero(
        [ours != theirs for ours, theirs in zip(target.texts, draft.texts, strict=False)]
    )
    sizes = len(target.texts), len(draft.texts)
    alike = abs(sizes[0] - sizes[1]) <= MAX_DIFFERENCE and len(differing) <= MAX_DIFFERENCE
    words: list[str] = []
    if target.kind != draft.kind:
        alike = False
        words.append("tokenizers of different kinds")
    if target.adds_bos != draft.adds_bos or (target.adds_bos and target.bos != draft.bos):
        alike = False
        words.append("texts begin with different tokens")
    if sizes[0] != sizes[1]:
        words.append(f"{sizes[0]} tokens and {sizes[1]}")
    if len(differing):
        first = int(differing[0])
        texts = f'"{target.text(first)}" and "{draft.text(first)}"'
        words.append(f"first difference: id {first}, {texts}")
    return Match(alike, differing, ", ".join(words))


def require_same(found: Match, *, target_name: str, draft_name: str) -> None:
    """Raises:
    IncompatibleModels: the ids do not mean the same, naming the first difference.
    """
    if not found.same:
        raise IncompatibleModels(
            "draft and target do not share a vocabulary",
            why=f"{target_name} against {draft_name}: {found.difference}",
            fix="choose a draft of the target's family, --cross-vocab, or --no-draft",
        )


@dataclass(frozen=True, slots=True, eq=False)
class Intersection:
    """The tokens that two vocabularies share by what they stand for, not by id.

    Attributes:
        target_ids, draft_ids: the two ids of each shared token, shape (shared,).
        share: how much of the target's vocabulary that is.
    """

    target_ids: Ids
    draft_ids: Ids
    share: float


def intersection(target: TokenTable, draft: TokenTable) -> Intersection:
    """Tokens with the same bytes; control tokens, which have none, with the same text.

    Timor et al., ICML 2025, arXiv 2502.05202 (token-level intersection).
    """
    theirs: dict[bytes, int] = {}
    for token in range(len(draft.texts)):
        theirs.setdefault(_meaning(draft, token), token)
    pairs = [
        (token, other)
        for token in range(len(target.texts))
        if (other := theirs.pop(_meaning(target, token), None)) is not None
    ]
    ids = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Intersection(ids[:, 0].copy(), ids[:, 1].copy(), len(pairs) / len(target.texts))


def _meaning(table: TokenTable, token: int) -> bytes:
    return table.piece(token) or b"control:" + table.texts[token]
