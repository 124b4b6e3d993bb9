"""Bytes of tokens -> text that may be shown: whole characters, no half of a stop text."""

from __future__ import annotations

import codecs
from itertools import accumulate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from specdec_cli.core.text import Piece, TextStream

alphabet = st.sampled_from("ab語👍")  # few letters, so that stop texts occur, and overlap
texts = st.text(alphabet, max_size=16)
stop_texts = st.lists(st.text(st.sampled_from("ab語"), min_size=1, max_size=4), max_size=3)
any_bytes = st.one_of(
    texts.map(str.encode), st.lists(st.sampled_from([*"ab語👍".encode(), 0xFF])).map(bytes)
)


@st.composite
def chunks(draw: st.DrawFn, data: st.SearchStrategy[bytes]) -> list[bytes]:
    """Bytes cut anywhere, inside of characters too; some tokens have no bytes."""
    whole = draw(data)
    cuts = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=len(whole) + 2)))
    return [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]


def shown(parts: list[bytes], stops: list[str]) -> tuple[list[Piece], TextStream]:
    """As a session does it: nothing is added after a stop, and the end is always told."""
    stream = TextStream(stops)
    pieces: list[Piece] = []
    for i, data in enumerate(parts):
        pieces += stream.add(data, str(i))
        if stream.stopped is not None:
            break
    return pieces + stream.finish("end"), stream


def joined(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def first_complete(text: str, stops: list[str]) -> int | None:
    """Where the stop text that is complete first begins; the longest, if several end there."""
    found = [(text.find(stop) + len(stop), text.find(stop)) for stop in stops if stop in text]
    return min(found)[1] if found else None


@given(chunks(any_bytes))
def test_without_stops_everything_is_shown(parts: list[bytes]) -> None:
    pieces, stream = shown(parts, [])
    assert joined(pieces) == b"".join(parts).decode("utf-8", "replace")
    assert stream.stopped is None


@given(chunks(any_bytes), st.text(alphabet, min_size=1, max_size=4))
def test_text_is_cut_before_the_first_occurrence_of_a_stop(parts: list[bytes], stop: str) -> None:
    pieces, stream = shown(parts, [stop])
    before, found, _ = b"".join(parts).decode("utf-8", "replace").partition(stop)
    assert joined(pieces) == before
    assert stream.stopped == (stop if found else None)


@given(chunks(any_bytes), stop_texts)
@example([b"abb"], ["abb", "b"])
@example([b"ab", b"b"], ["abb", "b"])
def test_how_the_text_is_cut_into_tokens_does_not_matter(
    parts: list[bytes], stops: list[str]
) -> None:
    """Of several stops the one that is complete first counts: any later one was never reached."""
    pieces, stream = shown(parts, stops)
    text = b"".join(parts).decode("utf-8", "replace")
    at = first_complete(text, stops)
    assert joined(pieces) == text[:at]
    assert (stream.stopped is None) == (at is None)


@given(chunks(texts.map(str.encode)), stop_texts)
def test_no_beginning_of_a_stop_is_shown_while_it_may_still_become_one(
    parts: list[bytes], stops: list[str]
) -> None:
    """After each token exactly the text that no continuation can take back has been shown."""
    stream, decoder, seen, text = TextStream(stops), codecs.getincrementaldecoder("utf-8")(), "", ""
    for data in parts:
        text += decoder.decode(data)
        seen += joined(stream.add(data, "x"))
        assert text.startswith(seen)
        if stream.stopped is not None:
            return
        waiting = [
            size
            for stop in stops
            for size in range(1, len(stop))
            if text.endswith(stop[:size]) and size <= len(text)
        ]
        assert len(text) - len(seen) == max(waiting, default=0)


@given(chunks(texts.map(str.encode)), stop_texts)
def test_each_character_has_the_source_of_the_token_that_completed_it(
    parts: list[bytes], stops: list[str]
) -> None:
    pieces, _ = shown(parts, stops)
    named = [(char, piece.source) for piece in pieces for char in piece.text]
    ends = list(accumulate(len(data) for data in parts))
    text = b"".join(parts).decode()
    for i, (char, source) in enumerate(named):
        assert char == text[i]
        size = len(text[: i + 1].encode())
        assert int(source) == next(token for token, end in enumerate(ends) if end >= size)


@given(chunks(any_bytes), stop_texts)
def test_no_piece_is_empty(parts: list[bytes], stops: list[str]) -> None:
    assert all(piece.text for piece in shown(parts, stops)[0])


def test_a_character_appears_with_its_last_byte_in_the_colour_of_that_token() -> None:
    stream = TextStream()
    first, second = "👍".encode()[:2], "👍".encode()[2:]
    assert stream.add(b"a" + first, "model") == [Piece("a", "model")]
    assert stream.add(second, "target") == [Piece("👍", "target")]


def test_a_held_beginning_keeps_its_sources_when_it_is_let_go() -> None:
    stream = TextStream(["abcd"])
    assert stream.add(b"xa", "model") == [Piece("x", "model")]
    assert stream.add(b"b", "target") == []
    assert stream.add(b"x", "suffix") == [
        Piece("a", "model"),
        Piece("b", "target"),
        Piece("x", "suffix"),
    ]


def test_what_is_held_at_the_end_is_shown() -> None:
    stream = TextStream(["abcd"])
    stream.add(b"abc", "model")
    assert stream.finish("target") == [Piece("abc", "model")]


@pytest.mark.parametrize("dead", [b"\xf0\x9f", b"\xe8\xaa", b"\xc3"])
def test_bytes_that_never_became_a_character_end_as_one_replacement(dead: bytes) -> None:
    stream = TextStream(["stop"])
    assert joined(stream.add(b"a" + dead, "model")) == "a"
    assert stream.finish("target") == [Piece("\ufffd", "target")]


def test_nothing_is_shown_after_a_stop() -> None:
    stream = TextStream(["."])
    assert joined(stream.add(b"one.two", "model")) == "one"
    assert stream.stopped == "."
    assert stream.add(b"three", "model") == []
    assert stream.finish("target") == []


def test_a_stop_may_be_hidden_in_a_held_beginning() -> None:
    """`aab` begins inside of `aaab` one character later than the hold does."""
    pieces, stream = shown([b"a", b"a", b"a", b"b"], ["aab"])
    assert joined(pieces) == "a"
    assert stream.stopped == "aab"
