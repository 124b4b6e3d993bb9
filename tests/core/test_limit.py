"""The oracle against every possible sequence of rounds, and what must hold for any text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdec_cli.core import limit
from specdec_cli.core.cost_curve import CostCurve
from specdec_cli.core.limit import SourceOnText, shortest_seconds

VERIFY = CostCurve({1: 10.0, 2: 11.0, 4: 14.0, 8: 17.0})
READ = CostCurve({1: 2.0, 2: 2.5, 8: 4.0})
LONGEST = 9


def exhaustive(
    length: int,
    verify: CostCurve,
    sources: list[SourceOnText],
    max_guesses: int,
    longest_lag: int = 1000,
) -> float:
    """Every sequence of rounds is tried, with a count of the tokens that each model has read."""

    def from_here(known: int, read: tuple[int | None, ...]) -> float:
        if known >= length:
            return 0.0
        best = verify(1) + from_here(known + 1, read)
        for s, source in enumerate(sources):
            most = min(source.hits[known], length - known - 1, max_guesses)
            for guesses in range(1, most + 1):
                seconds, after = verify(guesses + 1), read
                if source.read is not None:
                    seconds += source.prompt_seconds if read[s] is None else 0
                    seconds += source.read(min(known - (read[s] or 0), longest_lag))
                    seconds += (guesses - 1) * source.read(1)
                    after = (*read[:s], known + guesses - 1, *read[s + 1 :])
                best = min(best, seconds + from_here(known + guesses + 1, after))
        return best

    return from_here(1, (None,) * len(sources))


@st.composite
def curves(draw: st.DrawFn) -> CostCurve:
    seconds = draw(st.lists(st.integers(1, 40), min_size=1, max_size=LONGEST))
    return CostCurve(dict(enumerate(map(float, seconds), start=1)))


@st.composite
def texts(draw: st.DrawFn, longest: int = 7) -> tuple[int, list[SourceOnText]]:
    length = draw(st.integers(0, longest))
    hits = st.lists(st.integers(0, 4), min_size=length, max_size=length)
    source = st.builds(SourceOnText, hits, st.none() | curves(), st.integers(0, 30).map(float))
    return length, draw(st.lists(source, max_size=3))


@settings(max_examples=300, deadline=None)
@given(texts(), curves(), st.integers(0, 5))
def test_no_sequence_of_rounds_is_faster_and_one_is_as_fast(
    text: tuple[int, list[SourceOnText]], verify: CostCurve, max_guesses: int
) -> None:
    length, sources = text
    models = sum(source.read is not None for source in sources)
    if models == 3:  # the states of three models are too many to try here
        sources = [replace(sources[0], read=None), *sources[1:]]
    found = shortest_seconds(length, verify, sources, max_guesses=max_guesses)
    assert found == pytest.approx(exhaustive(length, verify, sources, max_guesses))


@settings(max_examples=100, deadline=None)
@given(texts(longest=9), curves())
def test_a_lag_beyond_the_longest_costs_what_the_longest_costs(
    text: tuple[int, list[SourceOnText]], verify: CostCurve
) -> None:
    length, sources = text
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(limit, "LONGEST_LAG", 3)
        found = shortest_seconds(length, verify, sources[:2], max_guesses=2)
    assert found == pytest.approx(exhaustive(length, verify, sources[:2], 2, longest_lag=3))


@settings(max_examples=100, deadline=None)
@given(texts(longest=30), curves(), st.data())
def test_more_hits_more_guesses_or_another_source_are_never_slower(
    text: tuple[int, list[SourceOnText]], verify: CostCurve, data: st.DataObject
) -> None:
    length, sources = text
    sources = sources[:2]
    before = shortest_seconds(length, verify, sources, max_guesses=3)
    assert shortest_seconds(length, verify, sources, max_guesses=4) <= before
    assert before <= shortest_seconds(length, verify, sources[1:], max_guesses=3)
    more = [
        replace(source, hits=[h + data.draw(st.integers(0, 2)) for h in source.hits])
        for source in sources
    ]
    assert shortest_seconds(length, verify, more, max_guesses=3) <= before


@pytest.mark.parametrize("length", [0, 1, 2, 7])
def test_without_sources_or_hits_it_is_plain_decoding(length: int) -> None:
    plain = max(0, length - 1) * 10.0
    for sources in ([], [SourceOnText([0] * length)], [SourceOnText([0] * length, READ)]):
        assert shortest_seconds(length, VERIFY, sources, max_guesses=8) == plain


def test_free_guesses_that_are_always_right_take_the_whole_width() -> None:
    source = SourceOnText([3] * 9)  # from 1 by 4 tokens a round to 9
    assert shortest_seconds(9, VERIFY, [source], max_guesses=8) == 2 * 14.0
    assert shortest_seconds(9, VERIFY, [source], max_guesses=1) == 4 * 11.0


def test_a_model_pays_for_the_prompt_once_and_then_for_two_tokens_a_round() -> None:
    source = SourceOnText([3] * 9, READ, prompt_seconds=5.0)
    first = 5.0 + 2.0 + 2 * 2.0  # the prompt and one token, then two further guesses
    second = 2.5 + 2 * 2.0
    assert shortest_seconds(9, VERIFY, [source], max_guesses=8) == first + second + 2 * 14.0


def test_a_model_whose_prompt_costs_more_than_it_gains_is_left_aside() -> None:
    source = SourceOnText([3] * 9, READ, prompt_seconds=80.0)
    assert shortest_seconds(9, VERIFY, [source], max_guesses=8) == 8 * 10.0


def test_a_model_catches_up_with_what_others_wrote() -> None:
    read = CostCurve({rows: float(rows) for rows in range(1, 10)})
    model = SourceOnText([0, 1, 0, 0, 0, 0, 0, 3, 0, 0, 0], read)
    free = SourceOnText([0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0])
    #  1: one guess; 3: three free ones; 7: the model reads 7 - 1 tokens and guesses three
    expected = (1 + 11) + 14 + (6 + 2 * 1 + 14)
    assert shortest_seconds(11, VERIFY, [model, free], max_guesses=8) == expected


def test_a_model_that_was_idle_for_long_reads_a_bounded_text_and_the_prompt_only_once() -> None:
    hits = [0, 1, *[0] * 97, 3, 0, 0, 0]
    read = CostCurve({1: 0.1, 2: 0.2})  # and 0.1 for each token more
    model = SourceOnText(hits, read, prompt_seconds=6.0)
    #  1: one guess; 3 to 99: plain; 99: three guesses; 103: the end
    expected = (6.0 + 0.1 + 11) + 96 * 10 + (48 * 0.1 + 2 * 0.1 + 14)
    assert shortest_seconds(103, VERIFY, [model], max_guesses=8) == pytest.approx(expected)


def test_a_long_answer_with_two_models_is_counted_to_its_end() -> None:
    length = 601
    sources = [SourceOnText([8] * length, READ, 5.0), SourceOnText([8] * length, READ, 6.0)]
    limit = shortest_seconds(length, VERIFY, sources, max_guesses=7)
    rounds = (length - 1) // 8  # of eight tokens each
    assert limit == pytest.approx(5.0 + 2.0 + (rounds - 1) * 2.5 + rounds * (6 * 2.0 + 17.0))
