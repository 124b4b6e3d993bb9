"""Thoughts are told from the answer, however the text is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec_cli.core.text import Piece
from specdec_cli.core.thinking import ThinkingStream, opens_thoughts


def read(parts: list[str], *, inside: bool = False) -> tuple[str, str]:
    """The thoughts and the rest."""
    stream = ThinkingStream(inside=inside)
    passages = [passage for part in parts for passage in stream.add([Piece(part, "target")])]
    passages += stream.finish()
    thoughts = "".join(text for text, _, thought in passages if thought)
    return thoughts, "".join(text for text, _, thought in passages if not thought)


@pytest.mark.parametrize(
    ("text", "thoughts", "rest"),
    [
        ("Hello.", "", "Hello."),
        ("<think>hm</think>Hello.", "<think>hm</think>", "Hello."),
        ("\n <think>\nhm <b>\n</think>\n\nHi", "\n <think>\nhm <b>\n</think>", "\n\nHi"),
        ("<thinking>a</thinking> b", "<thinking>a</thinking>", " b"),
        ("The tag <think> opens </think> it", "", "The tag <think> opens </think> it"),
        ("<think>cut off", "<think>cut off", ""),
        ("<think>cut </thi", "<think>cut </thi", ""),
        ("<thin", "", "<thin"),
        ("<b>bold</b>", "", "<b>bold</b>"),
        ("<think></think><think></think>", "<think></think>", "<think></think>"),
        ("", "", ""),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_thoughts_come_first(text: str, thoughts: str, rest: str, size: int) -> None:
    parts = [text[i : i + size] for i in range(0, len(text), size)]
    assert read(parts) == (thoughts, rest)


def test_a_template_may_have_opened_them() -> None:
    assert read(["so", " be it</think", ">Yes"], inside=True) == ("so be it</think>", "Yes")
    assert opens_thoughts("<|im_start|>assistant\n<think>\n")
    assert not opens_thoughts("What does <think> mean?\nassistant\n")


def test_text_that_cannot_be_a_tag_is_not_held_back() -> None:
    stream = ThinkingStream()
    assert stream.add([Piece("<", "target")]) == []
    shown = stream.add([Piece("div", "model"), Piece(">", "target")])
    assert shown == [("<", "target", False), ("div", "model", False), (">", "target", False)]
    assert stream.add([Piece("a <", "target")]) == [("a <", "target", False)]


@given(st.lists(st.sampled_from(["<think>", "</think>", "<", "thi", "nk>", " ", "a", "</"])))
def test_nothing_is_lost_or_reordered(parts: list[str]) -> None:
    stream = ThinkingStream()
    pieces = [Piece(part, str(i)) for i, part in enumerate(parts)]
    passages = [passage for piece in pieces for passage in stream.add([piece])] + stream.finish()
    assert "".join(passage.text for passage in passages) == "".join(parts)
    assert [int(passage.source) for passage in passages] == sorted(
        int(passage.source) for passage in passages
    )
    thought = [passage.thought for passage in passages]
    assert thought == sorted(thought, reverse=True)
