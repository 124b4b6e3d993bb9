"""Do a draft and a target speak of the same tokens?"""

from __future__ import annotations

from typing import Protocol

from specdec_cli.errors import IncompatibleModels

MAX_SIZE_DIFFERENCE = 128  # padding rows, as llama.cpp allows


class TokenTable(Protocol):
    """What has to agree between two vocabularies."""

    @property
    def kind(self) -> int: ...
    @property
    def bos(self) -> int: ...
    @property
    def eos(self) -> int: ...
    @property
    def adds_bos(self) -> bool: ...
    @property
    def texts(self) -> list[bytes]: ...
    def text(self, token: int) -> str: ...


def check_same_vocabulary(
    target: TokenTable, draft: TokenTable, *, target_name: str, draft_name: str
) -> None:
    """Raises:
    IncompatibleModels: naming the first difference.
    """
    if difference := first_difference(target, draft):
        raise IncompatibleModels(
            "draft and target do not share a vocabulary",
            why=f"{target_name} against {draft_name}: {difference}",
            fix="choose a draft of the target's family, or --no-draft",
        )


def first_difference(target: TokenTable, draft: TokenTable) -> str | None:
    """What tells two vocabularies apart, in words; None where a draft's ids mean the same."""
    if target.kind != draft.kind:
        return f"different kinds of tokenizer ({target.kind} and {draft.kind} in llama.cpp's count)"
    sizes = len(target.texts), len(draft.texts)
    different = next(
        (i for i, (a, b) in enumerate(zip(target.texts, draft.texts, strict=False)) if a != b),
        None,
    )
    if different is not None or abs(sizes[0] - sizes[1]) > MAX_SIZE_DIFFERENCE:
        words = (
            f"{sizes[0]} tokens and {sizes[1]}" if sizes[0] != sizes[1] else "token texts differ"
        )
        if different is None:
            return words
        texts = f'"{target.text(different)}" and "{draft.text(different)}"'
        return f"{words} (first difference: id {different}, {texts})"
    for name, ours, theirs in (
        ("beginning-of-text", target.bos, draft.bos),
        ("end-of-text", target.eos, draft.eos),
    ):
        if ours != theirs:
            return (
                f"the {name} token is id {ours}, "
                f'"{target.text(ours)}", and id {theirs}, "{draft.text(theirs)}"'
            )
    if target.adds_bos != draft.adds_bos:
        return "only one of them puts a beginning-of-text token before the prompt"
    return None
