"""`/why` in words: what was guessed, what was wanted, and how sure both models were."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from specdec_cli.app.chat.why import Explanation
from specdec_cli.cli.summary import folded

if TYPE_CHECKING:
    from specdec_cli.cli.chat_state import Chat


def why(chat: Chat, _argument: str) -> None:
    explanations = chat.talk.why()
    if not explanations:
        chat.terminal.report("the target refused no guess of the last answer")
        return
    width = chat.terminal.err.width
    chat.terminal.report("\n\n".join("\n".join(_explained(it, width)) for it in explanations))


def _explained(it: Explanation, width: int) -> list[str]:
    drawn = ", drawn by chance" if it.drawn else ""
    lines = [f'after "…{_quoted(it.before)[1:][8 - width :]}']
    drafter = "the draft" if it.source == "model" else f"the {it.source} drafter"
    for who, choice, other in (
        (f"{drafter} guessed", it.drafted, it.drafted_by_target),
        ("the target wanted", it.chosen, it.chosen_by_draft),
    ):
        judge = "target" if choice is it.drafted else "draft"
        lines.append(
            f"  {who} {_quoted(choice.text)} ({_percent(choice.prob)}"
            f"{drawn if choice is it.chosen else ''}; the {judge} gave it {_percent(other.prob)})"
        )
    for who, top in (("draft's", it.draft_top), ("target's", it.target_top)):
        parts = [f"{_quoted(choice.text)} {_percent(choice.prob)}" for choice in top]
        rows = folded(parts, width - 4).split("\n")
        lines.append(f"  the {who} likeliest:")
        lines += [f"    {row}" for row in rows]
    return lines


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _percent(prob: float) -> str:
    return f"{prob:.0%}" if prob >= 0.01 or prob == 0 else "<1%"
