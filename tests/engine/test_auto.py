"""`auto` on real contexts, end to end: the same text, whatever the clock has to say."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from gguf_files import write_tiny

from specdec_cli.app.chat.prompt_cache import readers
from specdec_cli.app.draft_models import DraftFile
from specdec_cli.app.generate import Answer, AnswerOptions, answer
from specdec_cli.app.session import LoadOptions, Session
from specdec_cli.core.experience import Kind
from specdec_cli.core.options import SamplingOptions
from specdec_cli.core.pass_seconds import PassSeconds
from specdec_cli.engine.llama.chat_template import ChatTemplate
from specdec_cli.engine.llama.context import LlamaContext

GREEDY, SAMPLED = SamplingOptions(temp=0), SamplingOptions(temp=0.8)
samplings = pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
MOST = 7


@contextmanager
def session(target: Path, *drafts: Path, rows: int = MOST) -> Iterator[Session]:
    files = tuple(DraftFile(path, f"draft{i}") for i, path in enumerate(drafts))
    options = LoadOptions(target, files, draft_tokens=rows, context_size=256, threads=1)
    with closing(Session(options)) as opened:
        yield opened


def said(
    opened: Session,
    sampling: SamplingOptions,
    count: int,
    *,
    rule: str = "coupled",
    plain: str = "",
    drafter: str = "auto",
) -> Answer:
    prompt = ChatTemplate(opened.model).tokens([{"role": "user", "content": "the cat"}])
    options = AnswerOptions(
        sampling, 5, rule=rule, drafter=drafter, max_tokens=count, ignore_eos=True
    )
    *_, last = answer(opened, prompt, options, no_draft=plain)
    assert isinstance(last, Answer)
    return last


def make_drafting_pay(opened: Session) -> None:
    """As if wide passes cost nothing more, and drafts next to nothing."""
    opened.experience.verify = PassSeconds({rows: 10.0 + 0.01 * rows for rows in (1, 2, 4, 8)})
    for draft in opened.drafts:
        cheap = PassSeconds({rows: 1e-7 * rows for rows in (1, 2, 4, 8, 64)})
        opened.experience.drafts[draft.key] = cheap


@samplings
@pytest.mark.parametrize("known", [False, True], ids=["first use", "costs known"])
def test_tiny_models_of_other_weights_answer_as_the_target_alone(
    tmp_path: Path, sampling: SamplingOptions, known: bool
) -> None:
    paths = [write_tiny(tmp_path / f"{seed}.gguf", seed=seed) for seed in range(3)]
    with session(*paths) as opened:
        plain = said(opened, sampling, 80, plain="to compare")
        opened.target.forget()
        if known:
            make_drafting_pay(opened)
        drafted = said(opened, sampling, 80)
        again = said(opened, sampling, 80)
    assert not plain.statistics.drafts
    assert drafted.tokens == again.tokens == plain.tokens
    assert opened.experience.verify is not None
    if known:
        assert drafted.statistics.drafted
        assert "guesses a draft" in drafted.decision


@samplings
def test_a_real_model_drafts_for_itself_where_that_pays(
    smollm2: Path, sampling: SamplingOptions
) -> None:
    with session(smollm2, smollm2) as opened:
        plain = said(opened, sampling, 24, plain="to compare")
        make_drafting_pay(opened)
        drafted = said(opened, sampling, 24)
    assert drafted.tokens == plain.tokens
    # Not all: its own kernels are others, and what is nearly a tie falls to either side.
    assert (drafted.statistics.acceptance_rate or 0) > 0.5
    assert (drafted.statistics.mean_acceptance_length or 0) > 1.8


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_measuring_keeps_to_the_rows_that_there_is_room_for(tmp_path: Path, rows: int) -> None:
    """llama.cpp ends the process where more rows are asked for."""
    paths = [write_tiny(tmp_path / f"{seed}.gguf", seed=seed) for seed in range(2)]
    with session(*paths, rows=rows) as opened:
        assert len(said(opened, GREEDY, 40).tokens) == 40
        assert opened.experience.verify is not None


@pytest.mark.parametrize("rule", ["coupled", "rejection", "block"])
@samplings
def test_a_draft_that_was_given_up_is_found_to_be_good(
    smollm2: Path, sampling: SamplingOptions, rule: str
) -> None:
    """By what it would have guessed, which is seen without a guess of its own."""
    with session(smollm2, smollm2) as opened:
        plain = said(opened, sampling, 100, plain="to compare")
        make_drafting_pay(opened)
        chosen = "greedy" if sampling.greedy else "sampled"
        known = opened.experience.of(opened.drafts[0].key, chosen, Kind.model)
        for rate in (*known.stands, *known.follows):
            rate.prior = 0.01
        known.savings = 100.0
        drafted = said(opened, sampling, 100, rule=rule, drafter="draft0")
    found = drafted.statistics.by_source["draft0"]
    assert found.drafted > 10
    assert found.accepted > 0.6 * found.drafted
    if rule == "coupled" or sampling.greedy:
        assert drafted.tokens == plain.tokens


@pytest.mark.parametrize("rule", ["rejection", "block"])
def test_rules_that_draw_run_under_it_too(tmp_path: Path, rule: str) -> None:
    paths = [write_tiny(tmp_path / f"{seed}.gguf", seed=seed) for seed in range(2)]
    with session(*paths) as opened:
        make_drafting_pay(opened)
        drafted = said(opened, SAMPLED, 40, rule=rule)
    assert len(drafted.tokens) == 40
    assert drafted.statistics.drafted


def test_what_one_session_learned_the_next_one_knows(tmp_path: Path) -> None:
    paths = [write_tiny(tmp_path / f"{seed}.gguf", seed=seed) for seed in range(2)]
    with session(*paths) as opened:
        assert opened.experience.verify is None
        said(opened, GREEDY, 60)
        assert opened.remember() == ""
        learned = opened.experience.as_dict()
    with session(*paths) as opened:
        known = opened.experience.as_dict()
        assert known["verify"] == learned["verify"]
        assert known["acceptance"] == learned["acceptance"]
        assert known["drafts"].keys() <= learned["drafts"].keys()  # what was measured


def test_an_answer_that_ends_while_measuring_is_plain_and_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    paths = [write_tiny(tmp_path / f"{seed}.gguf", seed=seed) for seed in range(2)]
    with session(*paths) as opened:
        short = said(opened, GREEDY, 3)
        assert short.decision == "plain: the answer ended while measuring"
        assert opened.experience.verify is None
        assert opened.remember() == ""
    with session(*paths) as opened:
        assert opened.experience.verify is None


@samplings
@pytest.mark.parametrize("attention", ["auto", "off"])
def test_a_copy_of_the_target_reads_nothing_that_the_target_has_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sampling: SamplingOptions, attention: str
) -> None:
    target = write_tiny(tmp_path / "target.gguf")
    copy = DraftFile(Path(shutil.copy(target, tmp_path / "copy.gguf")), "self")
    read: list[tuple[LlamaContext, int]] = []
    evaluate = LlamaContext._evaluate

    def counting(self: LlamaContext, tokens: list[int], start: int, *, rows: int) -> None:
        read.append((self, len(tokens)))
        evaluate(self, tokens, start, rows=rows)

    monkeypatch.setattr(LlamaContext, "_evaluate", counting)
    options = LoadOptions(
        target, (copy,), draft_tokens=MOST, context_size=256, threads=1, flash_attention=attention
    )
    with closing(Session(options)) as opened:
        plain = said(opened, sampling, 80, plain="to compare")
        opened.target.forget()
        make_drafting_pay(opened)
        drafted = said(opened, sampling, 80)
        (draft,) = opened.drafts
        assert drafted.tokens == plain.tokens
        assert drafted.statistics.by_source["self"].accepted > 40
        assert {count for context, count in read if context is draft.context} == {1}
        assert set(readers(opened)) == {"target"}  # nor is there anything of it to keep on disk
