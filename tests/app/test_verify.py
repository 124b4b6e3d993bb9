"""`verify` passes what is right, and does not fall for what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from gguf_files import write_tiny

from specdec_cli.app import verify as verifying
from specdec_cli.app.draft_models import DraftFile
from specdec_cli.app.self_test import check_rules
from specdec_cli.app.session import LoadOptions, Session
from specdec_cli.app.verify import Report, VerifyOptions, verify
from specdec_cli.core.chance import Chance
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.rounds import Proposal, Verdict
from specdec_cli.core.verification import RULES, TargetRows
from specdec_cli.engine.llama.context import LlamaContext

PROMPTS = [[5, 9, 40, 33, 80], [7, 7, 12]]
OPTIONS = VerifyOptions(SamplingOptions(temp=0.8), draft_tokens=3, max_tokens=24)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    directory = tmp_path_factory.mktemp("models")
    target = write_tiny(directory / "target.gguf", seed=1)
    draft = write_tiny(directory / "draft.gguf", seed=2)
    with Session(
        LoadOptions(target, (DraftFile(draft),), draft_tokens=3, context_size=128, threads=1)
    ) as loaded:
        yield loaded


def report(session: Session, options: VerifyOptions = OPTIONS) -> Report:
    *_, last = verify(session, PROMPTS, options)
    assert isinstance(last, Report)
    return last


def test_a_sound_pair_is_identical(session: Session) -> None:
    found = report(session)
    assert found.verdict == "identical", found
    assert {test.rule for test in found.rules} == set(RULES)
    assert len(found.runs) == len(PROMPTS) * 3  # greedy and two seeds
    assert {test.path for test in found.frequencies} == {"rule", "full"}


def test_greedy_verification_draws_nothing(session: Session) -> None:
    found = report(session, replace(OPTIONS, sampling=SamplingOptions(temp=0)))
    assert found.verdict == "identical"
    assert found.frequencies == ()


def believe(proposal: Proposal, target: TargetRows, chance: Chance, start: int) -> Verdict:
    """A wrong rule: every guess stands."""
    return Verdict(len(proposal), chance.choose(start + len(proposal), target(len(proposal))))


def compare_with_p(proposal: Proposal, target: TargetRows, chance: Chance, start: int) -> Verdict:
    """A wrong rule: accept with probability p(x), correct from p and not from the residual."""
    for i, guess in enumerate(proposal.guesses):
        if not chance.accept(start + i, target(i).prob(guess.token)):
            return Verdict(i, chance.choose(start + i, target(i)))
    return Verdict(len(proposal), chance.choose(start + len(proposal), target(len(proposal))))


def test_a_rule_that_believes_every_guess_is_caught(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifying, "RULE", replace(RULES["coupled"], verify=believe))
    found = report(session)
    assert found.verdict == "different"
    assert any(run.difference and not run.difference.follows[1] for run in found.runs)


@pytest.mark.parametrize("name", ["rejection", "block"])
def test_a_lossy_rule_is_caught_by_enumeration_and_by_frequencies(
    session: Session, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(RULES, name, replace(RULES[name], verify=compare_with_p))
    assert {test.rule for test in check_rules() if not test.passed} == {name}
    found = report(session)
    assert found.wrong_frequencies
    assert found.verdict == "different"


def test_a_corrupt_cache_is_no_tie(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """One cell of the target's cache holds another token than its memo says, from some round on."""
    evaluate = LlamaContext._evaluate
    spoilt = []

    def spoil(self: LlamaContext, tokens: list[int], start: int, *, rows: int) -> None:
        if self is session.target and rows == 4 and start > 10 and not spoilt:
            spoilt.append(start)
            evaluate(self, [(tokens[0] + 11) % 200 + 3, *tokens[1:]], start, rows=rows)
            self._evaluated[start] = tokens[0]
        else:
            evaluate(self, tokens, start, rows=rows)

    monkeypatch.setattr(LlamaContext, "_evaluate", spoil)
    verdicts: set[str] = set()
    for prompt in PROMPTS:
        for seed in range(6):
            spoilt.clear()
            plain = verifying.decode_plainly(session, prompt, OPTIONS.sampling, seed, 24)
            verdicts.add(verifying.compare(session, plain, OPTIONS.draft_tokens).verdict)
    assert verdicts == {"different"} or verdicts == {"different", "identical"}


def test_fewer_tokens_than_a_round_are_compared(session: Session) -> None:
    assert report(session, replace(OPTIONS, max_tokens=1)).verdict == "identical"
