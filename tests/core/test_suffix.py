"""The automaton finds what a slow search finds: the longest earlier match, and what followed it."""

from __future__ import annotations

from itertools import islice

from hypothesis import given, settings
from hypothesis import strategies as st

from specdec_cli.core.suffix import SuffixAutomaton, Trail

AHEAD = 5


def search(tokens: list[int]) -> tuple[int, list[list[int]]]:
    """Longest suffix that ends earlier too, and the continuation after each of its places."""
    for size in range(len(tokens) - 1, 0, -1):
        tail = tokens[-size:]
        ends = [e for e in range(size, len(tokens)) if tokens[e - size : e] == tail]
        if ends:
            return size, [continued(tokens, end) for end in ends]
    return 0, []


def continued(tokens: list[int], at: int) -> list[int]:
    text = list(tokens)
    for offset in range(AHEAD):
        text.append(text[at + offset])
    return text[len(tokens) :]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=40), st.lists(st.integers(0, 1), max_size=40))
def test_every_prefix_of_a_text_matches_the_slow_search(some: list[int], more: list[int]) -> None:
    automaton = SuffixAutomaton()
    text: list[int] = []
    for token in [*some, *more]:
        text.append(token)
        automaton.extend([token])
        size, continuations = search(text)
        assert automaton.match == size
        guesses = list(islice(automaton.continuation(), AHEAD))
        assert guesses in continuations if size else guesses == []


def test_a_loop_is_continued_as_a_loop() -> None:
    automaton = SuffixAutomaton([1, 2, 3] * 4)
    assert list(islice(automaton.continuation(), 7)) == [1, 2, 3, 1, 2, 3, 1]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=40), st.lists(st.integers(0, 3), max_size=40))
def test_a_trail_through_another_text_matches_the_slow_search(
    other: list[int], text: list[int]
) -> None:
    trail = Trail(SuffixAutomaton(other))
    for end in range(1, len(text) + 1):
        trail.extend(text[end - 1 : end])
        size, continuations = search_other(other, text[:end])
        assert trail.match == size
        assert list(trail.continuation()) in continuations


def search_other(other: list[int], text: list[int]) -> tuple[int, list[list[int]]]:
    """Longest suffix of the text that stands in the other one, and what follows its places."""
    for size in range(min(len(text), len(other)), 0, -1):
        tail = text[-size:]
        ends = [e for e in range(size, len(other) + 1) if other[e - size : e] == tail]
        if ends:
            return size, [other[end:] for end in ends]
    return 0, [[]]
