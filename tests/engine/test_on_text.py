"""What a drafter would have guessed on a finished text is what the decode loop accepts of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from toy import GREEDY, PLAIN, CountingModel, TableModel, random_model

from specdec_cli.core.chance import Chance
from specdec_cli.core.distribution import Row
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.rounds import Guess, Round
from specdec_cli.core.verification import RULES
from specdec_cli.engine.decoding import DecodeOptions, decode
from specdec_cli.engine.drafters import (
    CrossVocabularyDrafter,
    Drafter,
    ModelDrafter,
    SuffixDrafter,
)
from specdec_cli.engine.drafting import FixedLength
from specdec_cli.engine.on_text import hits
from specdec_cli.engine.retokenization import Retokenizer
from specdec_cli.engine.vocabulary import Intersection

VOCAB, SEED, COUNT = 6, 11, 60
PROMPT = (0, 3, 1)
WARM = replace(PLAIN, temp=0.8)
TARGET = random_model(3, VOCAB, order=2)
OTHER = random_model(9, VOCAB, order=2)
LIKE_TARGET = TableModel(  # wrong after some tokens, and only there
    lambda tokens: (OTHER if sum(tokens) % 5 == 0 else TARGET).rows(tokens), VOCAB
)


class Letters:
    """A vocabulary of texts; the longest that fits is the next token."""

    ends: frozenset[int] = frozenset()

    def __init__(self, *texts: str) -> None:
        self.texts = texts
        self.size = len(texts)

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        ids = []
        while text:
            longest = max(filter(text.startswith, self.texts), key=len)
            ids.append(self.texts.index(longest))
            text = text[len(longest) :]
        return ids

    def piece(self, token: int) -> bytes:
        return self.texts[token].encode()

    spelling = piece


def from_model(sampling: SamplingOptions, ends: frozenset[int]) -> Drafter:
    return ModelDrafter(LIKE_TARGET, sampling, target_vocab=VOCAB, ends=ends)


def from_suffix(sampling: SamplingOptions, ends: frozenset[int]) -> Drafter:
    return SuffixDrafter(ends=ends, min_match=1)


LETTERS, PAIRS = "abcdef", ("ab", "ba", "cd", "fe")


def from_other_words(sampling: SamplingOptions, ends: frozenset[int]) -> Drafter:
    """A draft that reads some pairs of letters as one token, and is mostly wrong after them.

    It guesses letters, so what it has guessed itself holds no pairs.
    """
    target, draft = Letters(*LETTERS), Letters(*LETTERS, *PAIRS)
    nothing = np.full(len(PAIRS), -np.inf, dtype=np.float32)

    def row(tokens: tuple[int, ...]) -> Row:
        text = "".join(draft.texts[token] for token in tokens)
        letters = tuple(target.tokenize(text, special=True))
        model = TARGET if tokens[-1] < VOCAB else OTHER
        return np.concatenate([model.rows(letters), nothing])

    everything = np.arange(VOCAB)
    return CrossVocabularyDrafter(
        TableModel(row, draft.size),
        sampling,
        target_vocab=VOCAB,
        ends=ends,
        shared=Intersection(everything, everything, 1.0),
        retokenizer=Retokenizer(target, draft),
    )


Make = Callable[[SamplingOptions, frozenset[int]], Drafter]
KINDS: list[Make] = [from_model, from_suffix, from_other_words]


def rounds_of(
    drafter: Drafter, k: int, sampling: SamplingOptions, ends: frozenset[int]
) -> list[Round]:
    drafting = FixedLength(drafter, k, at_once=True)
    options = DecodeOptions(sampling, SEED, COUNT, ends)
    return list(decode(TARGET, drafting, RULES["coupled"], PROMPT, options))


def hits_of(drafter: Drafter, answer: Sequence[int], most: int = 50) -> list[int]:
    return hits(drafter, PROMPT, answer, lambda at: RULES["coupled"].chance(SEED, at), most=most)


def text_of(rounds: list[Round]) -> list[int]:
    return [token for round in rounds for token in round.emitted]


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("sampling", [GREEDY, WARM], ids=["greedy", "warm"])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_a_round_accepts_as_many_as_would_have_hit(
    make: Make, sampling: SamplingOptions, k: int
) -> None:
    rounds = rounds_of(make(sampling, frozenset()), k, sampling, frozenset())
    expected = hits_of(make(sampling, frozenset()), text_of(rounds))
    known = 0
    for round in rounds:
        assert round.accepted == min(len(round.proposal), expected[known])
        known += len(round.emitted)
    assert sum(round.accepted for round in rounds) > 5  # so that there was something to compare


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("end", range(VOCAB))
def test_guesses_end_where_the_answer_ends(make: Make, end: int) -> None:
    ends = frozenset({end})
    rounds = rounds_of(make(WARM, ends), 4, WARM, ends)
    answer = text_of(rounds)
    expected = hits_of(make(WARM, ends), answer)
    assert len(expected) == len(answer)
    assert all(count <= len(answer) - known for known, count in enumerate(expected))
    known = 0
    for round in rounds:
        assert round.accepted == min(len(round.proposal), expected[known])
        known += len(round.emitted)


@pytest.mark.parametrize("make", KINDS)
def test_no_more_are_counted_than_asked_for(make: Make) -> None:
    answer = text_of(rounds_of(make(GREEDY, frozenset()), 1, GREEDY, frozenset()))
    all_of_them = hits_of(make(GREEDY, frozenset()), answer)
    assert max(all_of_them) > 2
    assert hits_of(make(GREEDY, frozenset()), answer, most=2) == [min(2, n) for n in all_of_them]


def test_a_draft_model_reads_the_text_once() -> None:
    draft = CountingModel(TARGET)  # always right, so every place has a long run of hits
    drafter = ModelDrafter(draft, GREEDY, target_vocab=VOCAB, ends=frozenset())
    answer = text_of(rounds_of(drafter, 3, GREEDY, frozenset()))
    draft.calls.clear()
    assert hits_of(drafter, answer) == [min(50, COUNT - known) for known in range(COUNT)]
    assert draft.calls == [(len(PROMPT) + known, 1) for known in range(COUNT)]


def test_a_draft_with_a_full_context_hits_nothing_more() -> None:
    draft = replace(TARGET, context_size=len(PROMPT) + 4)
    drafter = ModelDrafter(draft, GREEDY, target_vocab=VOCAB, ends=frozenset())
    answer = text_of(rounds_of(drafter, 3, GREEDY, frozenset()))
    assert hits_of(drafter, answer)[:7] == [5, 4, 3, 2, 1, 0, 0]


class Wavering:
    """Right with its first guess, and wrong with every other, wherever it begins."""

    source, memoryless = "wavering", False

    def draft(self, tokens: Sequence[int], chance: Chance) -> Iterator[Guess]:
        self.pulled = 1
        yield Guess(len(tokens))
        while True:
            self.pulled += 1
            yield Guess(-1)


def test_a_drafter_with_a_memory_is_followed_guess_by_guess() -> None:
    answer = list(range(len(PROMPT), 20))
    drafter = Wavering()
    assert hits_of(drafter, answer) == [1] * len(answer)
    assert drafter.pulled == 1  # at the last place nothing is left that a second guess could hit


def test_chance_is_asked_for_by_absolute_position() -> None:
    asked: list[int] = []

    def chance(position: int) -> Chance:
        asked.append(position)
        return RULES["coupled"].chance(SEED, position)

    hits(from_suffix(GREEDY, frozenset()), PROMPT, [2, 4, 2], chance, most=3)
    assert asked == [3, 4, 5]
