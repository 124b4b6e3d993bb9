"""What is kept of a pair between runs, and what a damaged record does."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec_cli.core.acceptance import DRIFT, START
from specdec_cli.core.experience import Experience, Kind
from specdec_cli.core.pass_seconds import PassSeconds

DAMAGE = (ValueError, KeyError, TypeError, AttributeError, OverflowError)  # what a reader expects


def lived() -> Experience:
    """After some passes and proposals."""
    experience = Experience(
        PassSeconds({1: 0.1, 4: 0.14, 8: 0.17}), {"a draft": PassSeconds({1: 0.01, 2: 0.012})}
    )
    assert experience.verify
    for rows in (1, 4, 5, 200):
        experience.verify.saw(rows, 0.05 * rows)
    for sampling in ("greedy", "sampled"):
        known = experience.of("a draft", sampling, Kind.model)
        known.saw([0.99, 0.2, 0.6], [1.0, 0.3, 0.0])
        known.savings, known.patience = 2.5, 4.0
    experience.of("suffix", "greedy", Kind.suffix)
    return experience


def through_json(experience: Experience) -> Experience:
    return Experience.from_dict(json.loads(json.dumps(experience.as_dict())))


def test_what_was_learned_survives_a_file() -> None:
    before = lived()
    before.next_answer()
    after = through_json(before)
    assert before.verify
    assert after.verify
    assert after.verify.pace == 1.0  # that of the machine now is in the points
    for rows in (1, 2, 4, 5, 8, 16, 256):
        assert after.verify(rows) == pytest.approx(before.verify(rows))
    assert after.drafts.keys() == before.drafts.keys()
    assert after.drafts["a draft"](1) == before.drafts["a draft"](1)
    assert after.acceptance.keys() == before.acceptance.keys()
    for key, known in before.acceptance.items():
        assert after.acceptance[key].savings == known.savings
        assert after.acceptance[key].patience == known.patience
        for confidence in (0.2, 0.6, 0.99):
            assert after.acceptance[key].of(confidence) == pytest.approx(known.of(confidence))
            assert after.acceptance[key].after(confidence) == pytest.approx(known.after(confidence))


def test_writing_it_twice_changes_nothing() -> None:
    once = json.dumps(through_json(lived()).as_dict())
    assert json.dumps(through_json(Experience.from_dict(json.loads(once))).as_dict()) == once


def test_no_experience_is_one_too() -> None:
    assert through_json(Experience()) == Experience()


def test_sources_are_believed_by_their_kind_and_kept_apart() -> None:
    experience = Experience()
    model = experience.of("m", "greedy", Kind.model)
    assert experience.of("m", "greedy", Kind.model) is model
    copy = experience.of("s", "greedy", Kind.self)
    assert copy.of(0.6) > model.of(0.6)
    model.saw([0.6] * 9, [0.0] * 9)
    assert experience.of("m", "sampled", Kind.model).of(0.6) > model.of(0.6)


def test_another_answer_begins_between_what_was_believed_and_what_was_seen() -> None:
    experience = Experience()
    known = experience.of("m", "greedy", Kind.model)
    believed = known.of(0.99)
    known.saw([0.99] * 200, [0.1] * 200)
    seen = known.of(0.99)
    experience.next_answer()
    start = known.of(0.99)
    assert start == pytest.approx(believed + DRIFT * (seen - believed))
    known.saw([0.99] * 5, [1.0] * 5)
    assert known.of(0.99) - start > 0.05
    experience.next_answer()
    once = known.of(0.99)
    for _ in range(20):
        experience.next_answer()
    assert known.of(0.99) == once  # answers without a guess say nothing


def test_what_all_answers_show_is_believed_in_the_end() -> None:
    experience = Experience()
    known = experience.of("m", "greedy", Kind.model)
    for _ in range(12):
        known.saw([0.99] * 40, [0.1] * 40)
        experience.next_answer()
    assert known.of(0.99) == pytest.approx(0.1, abs=0.05)


def test_the_next_process_begins_as_the_next_answer_does() -> None:
    experience = lived()
    stored = through_json(experience)
    experience.next_answer()
    for key, known in experience.acceptance.items():
        for confidence in (0.2, 0.6, 0.99):
            assert stored.acceptance[key].of(confidence) == pytest.approx(known.of(confidence))


def test_forgetting_answers_keeps_the_costs() -> None:
    experience = lived()
    costs = experience.verify
    experience.forget_answers()
    assert experience.verify is costs
    assert experience.drafts
    assert experience.of("a draft", "greedy", Kind.model).of(0.99) > 0.9


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(json.dumps(lived().as_dict()))
    change(record)
    return record


DAMAGED: dict[str, Callable[[dict[str, Any]], object]] = {
    "no verify": lambda record: record.pop("verify"),
    "no drafts": lambda record: record.pop("drafts"),
    "no acceptance": lambda record: record.pop("acceptance"),
    "verify is a number": lambda record: record.update(verify=3),
    "verify is a list": lambda record: record.update(verify=[0.1]),
    "verify is empty": lambda record: record.update(verify={}),
    "no single row": lambda record: record["verify"].pop("1"),
    "rows are words": lambda record: record["verify"].update(many=0.1),
    "no rows": lambda record: record["verify"].update({"0": 0.1}),
    "negative rows": lambda record: record["verify"].update({"-3": 0.1}),
    "negative seconds": lambda record: record["verify"].update({"4": -0.1}),
    "zero seconds": lambda record: record["verify"].update({"4": 0}),
    "endless seconds": lambda record: record["verify"].update({"4": float("inf")}),
    "seconds are no number": lambda record: record["verify"].update({"4": float("nan")}),
    "seconds are null": lambda record: record["verify"].update({"4": None}),
    "seconds are a list": lambda record: record["verify"].update({"4": [1]}),
    "drafts are a list": lambda record: record.update(drafts=["a"]),
    "a draft without costs": lambda record: record["drafts"].update(b=None),
    "acceptance is null": lambda record: record.update(acceptance=None),
    "acceptance of words": lambda record: record.update(acceptance=["a"]),
    "an entry without a name": lambda record: record["acceptance"][0].pop("source"),
    "an entry without rates": lambda record: record["acceptance"][0].pop("stands"),
    "too few rates": lambda record: record["acceptance"][0]["stands"].pop(),
    "too many rates": lambda record: record["acceptance"][0]["follows"].append(0.5),
    "a rate above one": lambda record: record["acceptance"][0].update(stands=[1.5] * START),
    "a rate below none": lambda record: record["acceptance"][0].update(stands=[-0.1] * START),
    "rates are no numbers": lambda record: record["acceptance"][0].update(
        stands=[float("nan")] * START
    ),
    "rates are words": lambda record: record["acceptance"][0].update(stands=["a"] * START),
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_record_is_refused(damage: Callable[[dict[str, Any]], object]) -> None:
    with pytest.raises(DAMAGE):
        Experience.from_dict(changed(damage))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(
    st.sampled_from(["verify", "drafts", "acceptance", "other"]),
    json_values,
    st.sampled_from([None, "source", "sampling", "stands", "follows"]),
)
def test_whatever_stands_there_is_read_or_refused_in_the_expected_ways(
    key: str, value: Any, inner: str | None
) -> None:
    def damage(record: dict[str, Any]) -> None:
        where = record if inner is None else record["acceptance"][0]
        where[key if inner is None else inner] = value

    with contextlib.suppress(DAMAGE):
        Experience.from_dict(changed(damage))
