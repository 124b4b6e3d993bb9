"""`logits` is a pure function of its tokens, whatever was asked before: the cache is only a memo.

Fresh and remembered evaluations run other kernels on other shapes, so they agree up to rounding;
a wrong cache is off by whole logits (their standard deviation is about 4).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pytest
from contexts import BATCH, ROWS, SIZE, Countdown, context
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import random_model

from specdec_cli.engine.language_model import Interrupted
from specdec_cli.engine.llama.context import LlamaContext
from specdec_cli.engine.llama.model import LlamaModel
from specdec_cli.errors import EvaluationError


@dataclass
class Subject:
    """A context with a history, one without, and how far apart they may be."""

    model: LlamaModel
    tolerance: float

    def __post_init__(self) -> None:
        self.countdown = Countdown()
        self.used = context(self.model, stop=self.countdown)
        self.fresh = context(self.model)

    def check(self, tokens: list[int], last: int) -> None:
        rows = self.used.logits(tokens, last=last)
        assert rows.shape == (last, self.model.vocabulary.size)
        assert rows.dtype == np.float32
        self.fresh.forget()
        np.testing.assert_allclose(
            rows, self.fresh.logits(tokens, last=last), rtol=0, atol=self.tolerance
        )

    def close(self) -> None:
        self.used.close()
        self.fresh.close()


def subject_of(model: LlamaModel, tolerance: float) -> Iterator[Subject]:
    subject = Subject(model, tolerance)
    yield subject
    subject.close()


@pytest.fixture(scope="module")
def tiny_subject(tiny: LlamaModel) -> Iterator[Subject]:
    yield from subject_of(tiny, 0.02)


@pytest.fixture(scope="module")
def mamba_subject(mamba: LlamaModel) -> Iterator[Subject]:
    yield from subject_of(mamba, 0.02)


@pytest.fixture(scope="module")
def real_subject(real: LlamaModel) -> Iterator[Subject]:
    yield from subject_of(real, 0.1)


@pytest.fixture(params=["tiny", "mamba", "real"])
def subject(request: pytest.FixtureRequest) -> Subject:
    return request.getfixturevalue(f"{request.param}_subject")


@dataclass(frozen=True)
class Step:
    """Keep a share of the last tokens, add others, ask for the last rows."""

    keep: float
    added: list[int]
    last: int
    before: str
    patience: int  # nodes of the compute graph until the interruption


STEPS = st.lists(
    st.builds(
        Step,
        keep=st.sampled_from([0.0, 1.0, 1.0]) | st.floats(0, 1),
        added=st.lists(st.integers(3, 250), max_size=20),
        last=st.integers(1, ROWS),
        before=st.sampled_from(["", "", "", "forget", "interrupt"]),
        patience=st.integers(0, 120),
    ),
    min_size=1,
    max_size=7,
)


def follow(subject: Subject, steps: list[Step]) -> None:
    """Each step is checked against an evaluation without a past."""
    tokens: list[int] = [5]
    for step in steps:
        kept = tokens[: round(step.keep * len(tokens))]
        tokens = [*kept, *step.added][-SIZE:] or [7]
        last = min(step.last, len(tokens))
        if step.before == "forget":
            subject.used.forget()
            assert subject.used.cached(tokens) == 0
        if step.before == "interrupt":
            subject.countdown.left = step.patience
            with suppress(Interrupted):
                subject.used.logits(tokens, last=last)
            subject.countdown.left = None
        subject.check(tokens, last)
        assert subject.used.cached(tokens) == len(tokens)


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_any_history_of_a_tiny_model_changes_nothing(
    tiny_subject: Subject, steps: list[Step]
) -> None:
    follow(tiny_subject, steps)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_any_history_of_a_recurrent_model_changes_nothing(
    mamba_subject: Subject, steps: list[Step]
) -> None:
    follow(mamba_subject, steps)


@settings(max_examples=12, deadline=None)
@given(STEPS)
def test_any_history_of_a_real_model_changes_nothing(
    real_subject: Subject, steps: list[Step]
) -> None:
    follow(real_subject, steps)


def test_a_row_is_what_follows_its_own_prefix(subject: Subject) -> None:
    tokens = list(range(20, 20 + SIZE))
    rows = subject.used.logits(tokens, last=ROWS).copy()
    for i in range(ROWS):
        prefix = tokens[: len(tokens) - ROWS + 1 + i]
        subject.fresh.forget()
        alone = subject.fresh.logits(prefix, last=1)[0]
        np.testing.assert_allclose(rows[i], alone, rtol=0, atol=subject.tolerance)


@pytest.mark.parametrize("batch", [ROWS, 6, 7, 8, 13])
@pytest.mark.parametrize("length", [1, BATCH, SIZE - 1, SIZE])
def test_chunks_of_any_size_give_the_logits_of_one_batch(
    tiny: LlamaModel, tiny_subject: Subject, batch: int, length: int
) -> None:
    tokens, last = list(range(30, 30 + length)), min(ROWS, length)
    with_chunks = context(tiny, batch=batch)
    whole = context(tiny, batch=SIZE)
    np.testing.assert_allclose(
        with_chunks.logits(tokens, last=last),
        whole.logits(tokens, last=last),
        rtol=0,
        atol=tiny_subject.tolerance,
    )
    with_chunks.close()
    whole.close()


def test_one_token_more_than_the_context_is_an_error_and_harms_nothing(subject: Subject) -> None:
    tokens = list(range(40, 40 + SIZE))
    subject.check(tokens, 3)
    with pytest.raises(EvaluationError, match="context is full"):
        subject.used.logits([*tokens, 9], last=1)
    assert subject.used.cached(tokens) == SIZE
    subject.check(tokens, 3)


def test_only_the_common_prefix_counts_as_cached(tiny: LlamaModel) -> None:
    model = context(tiny)
    assert model.cached([1, 2, 3]) == 0
    model.logits([1, 2, 3, 4], last=1)
    assert model.cached([1, 2, 3, 4, 5, 6]) == 4
    assert model.cached([1, 2, 9, 4]) == 2
    assert model.cached([9]) == 0
    model.close()


def test_an_interrupted_prompt_remembers_the_chunks_that_were_done(tiny: LlamaModel) -> None:
    countdown = Countdown()
    model = context(tiny, stop=countdown)
    tokens = list(range(30, 30 + SIZE))
    countdown.left = nodes_of_a_chunk(model, countdown, tokens[:BATCH]) + 5
    model.forget()
    with pytest.raises(Interrupted):
        model.logits(tokens, last=1)
    assert model.cached(tokens) == BATCH
    model.close()


def nodes_of_a_chunk(model: LlamaContext, countdown: Countdown, tokens: list[int]) -> int:
    countdown.left = 10**9
    model.logits(tokens, last=1)
    return 10**9 - countdown.left


def test_a_recurrent_model_says_that_it_cannot_roll_back(
    mamba: LlamaModel, tiny: LlamaModel
) -> None:
    for model, can in ((mamba, False), (tiny, True)):
        opened = context(model)
        assert opened.can_roll_back is can
        opened.close()


def test_the_toy_of_the_loop_tests_keeps_the_same_contract() -> None:
    toy, tokens = random_model(1, 7, context_size=SIZE), [i % 7 for i in range(SIZE)]
    rows = toy.logits(tokens, last=ROWS)
    assert (rows.shape, rows.dtype) == ((ROWS, 7), np.float32)
    for i in range(ROWS):
        alone = toy.logits(tokens[: SIZE - ROWS + 1 + i], last=1)
        np.testing.assert_array_equal(rows[i], alone[0])
    with pytest.raises(EvaluationError, match="context is full"):
        toy.logits([*tokens, 1], last=1)
