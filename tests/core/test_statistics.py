"""Sums over rounds: the identities that every report relies on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec_cli.core.rounds import NOTHING, TARGET, Guess, Proposal, Round, Seconds
from specdec_cli.core.statistics import Statistics, ratio


@st.composite
def any_round(draw: st.DrawFn) -> Round:
    proposed = draw(st.integers(0, 5))
    source = draw(st.sampled_from(["model", "suffix"])) if proposed else "none"
    proposal = Proposal(tuple(Guess(token) for token in range(proposed)), source)
    accepted = draw(st.integers(0, proposed))
    seconds = Seconds(*[draw(st.integers(0, 3)) / 4 for _ in range(3)])
    return Round((*range(accepted), 99), proposal, accepted, seconds)


rounds = st.lists(any_round(), max_size=8)


def summed(played: list[Round]) -> Statistics:
    statistics = Statistics()
    for round in played:
        statistics.add(round)
    return statistics


@given(rounds)
def test_the_counts_agree_with_each_other(played: list[Round]) -> None:
    total = summed(played)
    assert total.passes == sum(total.histogram) == len(played)
    assert total.tokens == total.accepted + total.passes  # nothing was cut
    assert sum(i * count for i, count in enumerate(total.histogram)) == total.accepted
    assert total.accepted <= total.drafted
    assert total.drafts == sum(1 for round in played if len(round.proposal))
    assert total.drafts <= total.passes
    assert sum(count.drafted for count in total.by_source.values()) == total.drafted
    assert sum(count.accepted for count in total.by_source.values()) == total.accepted
    assert "none" not in total.by_source


@given(rounds)
def test_every_second_is_counted_once(played: list[Round]) -> None:
    total = summed(played)
    assert total.prompt_seconds == (played[0].seconds.target if played else 0)
    assert total.prompt_seconds + total.predicted_seconds == sum(r.seconds.total for r in played)


@given(rounds)
def test_rates_are_numbers_in_their_range_or_none(played: list[Round]) -> None:
    total = summed(played)
    assert (total.acceptance_rate is None) == (total.drafted == 0)
    assert (total.mean_acceptance_length is None) == (total.drafts == 0)
    assert (total.tokens_per_pass is None) == (not played)
    assert (total.tokens_per_second is None) == (total.predicted_seconds == 0)
    assert total.acceptance_rate is None or 0 <= total.acceptance_rate <= 1
    assert total.draft_share is None or 0 <= total.draft_share <= 1
    assert total.tokens_per_pass is None or total.tokens_per_pass >= 1
    assert total.mean_acceptance_length is None or 1 <= total.mean_acceptance_length <= 6


def test_an_answer_of_three_rounds_by_hand() -> None:
    three = Proposal(tuple(map(Guess, (1, 2, 3))), "model")
    total = summed(
        [
            Round((7,), NOTHING, 0, Seconds(0.0, 5.0, 0.25)),
            Round((1, 2, 8), three, 2, Seconds(0.5, 1.0, 0.25)),
            Round((1, 2, 3, 9), three, 3, Seconds(0.5, 1.0, 0.5)),
        ]
    )
    assert (total.tokens, total.passes, total.drafts) == (8, 3, 2)
    assert (total.drafted, total.accepted, total.histogram) == (6, 5, [1, 0, 1, 1])
    assert total.acceptance_rate == pytest.approx(5 / 6)
    assert total.mean_acceptance_length == 3.5
    assert total.tokens_per_pass == pytest.approx(8 / 3)
    assert (total.prompt_seconds, total.predicted_seconds) == (5.0, 4.0)
    assert (total.tokens_per_second, total.draft_share) == (2.0, 0.25)


@pytest.mark.parametrize("whole", [0, 0.0, -1.0])
def test_a_ratio_without_a_whole_is_none(whole: float) -> None:
    assert ratio(0, whole) is None
    assert ratio(1, whole) is None


@given(any_round(), st.integers(0, 7))
def test_a_round_can_be_ended_earlier(round: Round, count: int) -> None:
    cut = round.through(count, "stop")
    assert cut.emitted == round.emitted[:count]
    assert cut.accepted == min(round.accepted, len(cut.emitted))
    assert (cut.finish, cut.proposal, cut.seconds) == ("stop", round.proposal, round.seconds)
    assert round.finish is None
    total = summed([cut])
    assert (total.tokens, total.accepted) == (len(cut.emitted), cut.accepted)
    assert total.accepted <= total.drafted


@given(any_round())
def test_accepted_tokens_have_the_drafters_source_and_the_last_the_targets(round: Round) -> None:
    sources = [round.source(i) for i in range(len(round.emitted))]
    assert sources == [round.proposal.source] * round.accepted + [TARGET]


def test_a_proposal_of_guesses_without_a_law_is_a_row_of_points() -> None:
    proposal = Proposal((Guess(4), Guess(2)), "suffix")
    assert (proposal.tokens, len(proposal)) == ((4, 2), 2)
    assert proposal.guesses[1].law.prob(2) == 1.0
    assert (len(NOTHING), NOTHING.source) == (0, "none")
