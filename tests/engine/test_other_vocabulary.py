"""A draft with other tokens: it guesses what both share, and the answer stays the target's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from gguf_files import write_tiny

from specdec_cli.app.draft_models import DraftFile
from specdec_cli.app.generate import Answer, AnswerOptions, answer
from specdec_cli.app.session import LoadOptions, Session
from specdec_cli.core.options import SamplingOptions
from specdec_cli.engine.llama.model import LlamaModel
from specdec_cli.engine.retokenization import Retokenizer
from specdec_cli.engine.vocabulary import intersection
from specdec_cli.errors import IncompatibleModels

PROMPT = "Once upon a time there was a tall tower by the sea, and in it"


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A byte model: its 256 byte tokens are no tokens of SmolLM2's, some letters are."""
    return write_tiny(tmp_path_factory.mktemp("models") / "target.gguf", seed=3)


@pytest.fixture(scope="module")
def mixed(target: Path, smollm2: Path) -> Iterator[Session]:
    options = LoadOptions(
        target,
        (DraftFile(smollm2),),
        cross_vocab=True,
        draft_tokens=3,
        context_size=256,
        threads=1,
    )
    with Session(options) as session:
        yield session


def tokens(session: Session, seed: int, temp: float, *, plain: bool = False) -> Answer:
    options = AnswerOptions(
        SamplingOptions(temp=temp), seed, draft_tokens=3, max_tokens=24, ignore_eos=True
    )
    prompt = session.model.vocabulary.tokenize(PROMPT, special=False)
    *_, last = answer(session, prompt, options, no_draft="plain" if plain else "")
    assert isinstance(last, Answer)
    return last


@pytest.mark.parametrize("temp", [0.0, 0.8])
def test_the_text_is_the_targets_whatever_such_a_draft_guesses(mixed: Session, temp: float) -> None:
    for seed in range(4):
        drafted, plain = tokens(mixed, seed, temp), tokens(mixed, seed, temp, plain=True)
        assert drafted.tokens == plain.tokens
        assert drafted.statistics.drafted > 0


def test_the_share_of_the_vocabulary_is_said(mixed: Session) -> None:
    assert any("%" in notice and "vocabulary" in notice for notice in mixed.notices)


def test_without_leave_such_a_pair_is_refused(target: Path, smollm2: Path) -> None:
    with pytest.raises(IncompatibleModels, match="do not share a vocabulary") as caught:
        Session(LoadOptions(target, (DraftFile(smollm2),), context_size=64, threads=1))
    assert "first difference: id 0" in caught.value.why
    assert "--cross-vocab" in caught.value.fix


def test_shared_tokens_mean_the_same_in_both(target: Path, smollm2: Path) -> None:
    ours, theirs = LlamaModel(target), LlamaModel(smollm2)
    shared = intersection(ours.vocabulary, theirs.vocabulary)
    assert 0 < shared.share < 1
    for a, b in zip(shared.target_ids.tolist(), shared.draft_ids.tolist(), strict=True):
        assert ours.vocabulary.piece(a) == theirs.vocabulary.piece(b)
        if not ours.vocabulary.piece(a):
            assert ours.vocabulary.text(a) == theirs.vocabulary.text(b)
    assert len(set(shared.draft_ids.tolist())) == len(shared.draft_ids)
    ours.close()
    theirs.close()


def test_a_text_is_translated_as_if_at_once(smollm2: Path, target: Path) -> None:
    """Token by token, with characters split across tokens, and from one text to another."""
    ours, theirs = LlamaModel(target), LlamaModel(smollm2)
    retokenizer = Retokenizer(ours.vocabulary, theirs.vocabulary)
    text = "The old 你好 keeper 🙂 climbed the stairs. " * 6
    ids = ours.vocabulary.tokenize(text, special=False)
    whole = b"".join(ours.vocabulary.piece(token) for token in ids)
    for end in range(1, len(ids) + 1):
        found = retokenizer.translate(ids[:end])
        written = b"".join(ours.vocabulary.piece(token) for token in ids[:end])
        if found:
            assert b"".join(map(theirs.vocabulary.piece, found)) == written
        else:
            with pytest.raises(UnicodeDecodeError):
                written.decode()
    assert found == theirs.vocabulary.tokenize(whole.decode(), special=True)
    other = ours.vocabulary.tokenize("Another text.", special=False)
    assert b"".join(map(theirs.vocabulary.piece, retokenizer.translate(other))).strip() == (
        b"Another text."
    )
    ours.close()
    theirs.close()
