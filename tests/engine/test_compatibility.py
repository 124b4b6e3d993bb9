"""Which drafts a target takes."""

from __future__ import annotations

import pytest
from contexts import Load
from gguf_files import FIRST_PIECE

from specdec_cli.engine.llama.model import LlamaModel
from specdec_cli.engine.vocabulary import match, require_same
from specdec_cli.errors import IncompatibleModels

CHANGED = FIRST_PIECE + 1


def test_other_weights_with_the_same_vocabulary_match(tiny: LlamaModel, load: Load) -> None:
    found = match(tiny.vocabulary, load(seed=7).vocabulary)
    assert (found.same, list(found.differing), found.difference) == (True, [], "")


def test_the_first_token_that_differs_is_named_and_never_drafted(
    tiny: LlamaModel, load: Load
) -> None:
    found = match(tiny.vocabulary, load(renamed={CHANGED: "they"}).vocabulary)
    assert list(found.differing) == [CHANGED]
    assert f"id {CHANGED}" in found.difference
    assert '"he" and "they"' in found.difference


@pytest.mark.parametrize(("count", "fits"), [(128, True), (129, False)])
def test_a_few_tokens_may_differ_but_not_many(
    tiny: LlamaModel, load: Load, count: int, fits: bool
) -> None:
    renamed = {token: f"[other {token}]" for token in range(100, 100 + count)}
    found = match(tiny.vocabulary, load(renamed=renamed).vocabulary)
    assert found.same is fits
    assert "id 100," in found.difference


@pytest.mark.parametrize(("extra", "fits"), [(1, True), (128, True), (129, False)])
def test_padding_tokens_may_be_128_more_or_fewer(
    tiny: LlamaModel, load: Load, extra: int, fits: bool
) -> None:
    padded = load(extra_tokens=extra)
    for one, other in ((tiny, padded), (padded, tiny)):
        found = match(one.vocabulary, other.vocabulary)
        assert found.same is fits
        assert str(tiny.vocabulary.size) in found.difference
        assert str(padded.vocabulary.size) in found.difference


def test_another_kind_of_tokenizer_is_refused(tiny: LlamaModel, real: LlamaModel) -> None:
    found = match(real.vocabulary, tiny.vocabulary)
    assert not found.same
    assert "kind" in found.difference


def test_a_draft_that_begins_texts_otherwise_is_refused(tiny: LlamaModel, load: Load) -> None:
    found = match(tiny.vocabulary, load(add_bos=False).vocabulary)
    assert not found.same
    assert "begin" in found.difference


def test_the_error_names_both_files_and_the_ways_out(tiny: LlamaModel, load: Load) -> None:
    found = match(tiny.vocabulary, load(extra_tokens=200).vocabulary)
    with pytest.raises(IncompatibleModels) as error:
        require_same(found, target_name="big.gguf", draft_name="small.gguf")
    assert "big.gguf" in error.value.why
    assert "small.gguf" in error.value.why
    assert "--no-draft" in error.value.fix
    assert error.value.code == 4
