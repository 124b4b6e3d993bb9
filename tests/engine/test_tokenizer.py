"""Text -> ids -> bytes, by llama.cpp's tokenizer."""

from __future__ import annotations

import pytest
from contexts import Load
from gguf_files import BOS, EOS, IM_END, IM_START, byte_ids
from hypothesis import given, settings
from hypothesis import strategies as st

from specdec_cli.engine.llama.model import LlamaModel

AWKWARD = [
    "",
    " ",
    "  two  spaces ",
    "\n\n\t",
    "naïve 你好 🙂 e\u0301",
    "a\0b",
    "<|im_end|>",
    "\ufeff",
]


def round_trip(model: LlamaModel, text: str) -> str:
    vocabulary = model.vocabulary
    ids = vocabulary.tokenize(text, special=False)
    return b"".join(vocabulary.piece(token) for token in ids).decode()


@pytest.mark.parametrize("text", AWKWARD, ids=repr)
def test_awkward_text_comes_back_as_it_was(tiny: LlamaModel, real: LlamaModel, text: str) -> None:
    assert round_trip(real, text) == text
    assert round_trip(tiny, text) == text


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(min_codepoint=32, max_codepoint=0x1FFFF, exclude_categories=["C"])))
def test_any_text_comes_back_from_a_byte_level_vocabulary(real: LlamaModel, text: str) -> None:
    # SmolLM2 has no tokens for some control characters and for 0xF1, which begins higher planes.
    assert round_trip(real, text) == text


def test_a_long_text_needs_more_than_the_first_buffer(real: LlamaModel) -> None:
    text = "An answer. " * 5000
    assert round_trip(real, text) == text


def test_a_long_piece_needs_more_than_the_first_buffer(load: Load) -> None:
    word = "w" * 500
    vocabulary = load(script=[word]).vocabulary
    assert vocabulary.piece(vocabulary.size - 1) == word.encode()


def test_a_character_may_be_several_tokens_and_each_is_some_of_its_bytes(
    tiny: LlamaModel,
) -> None:
    vocabulary = tiny.vocabulary
    ids = vocabulary.tokenize("🙂", special=False)
    assert ids == byte_ids("🙂")
    assert [vocabulary.piece(token) for token in ids] == [b"\xf0", b"\x9f", b"\x99", b"\x82"]


def test_control_tokens_are_spelled_only_on_request(tiny: LlamaModel) -> None:
    tokenize = tiny.vocabulary.tokenize
    assert IM_END in tokenize("x<|im_end|>", special=True)
    assert IM_END not in tokenize("x<|im_end|>", special=False)


def test_control_tokens_have_no_text(tiny: LlamaModel) -> None:
    assert [tiny.vocabulary.piece(token) for token in (BOS, EOS, IM_START)] == [b"", b"", b""]


def test_end_tokens_are_known_by_id(tiny: LlamaModel, real: LlamaModel) -> None:
    assert tiny.vocabulary.ends >= {EOS, IM_END}
    assert IM_START not in tiny.vocabulary.ends
    assert real.vocabulary.tokenize("<|im_end|>", special=True)[0] in real.vocabulary.ends


def test_a_token_that_does_not_exist_has_no_text(tiny: LlamaModel) -> None:
    assert tiny.vocabulary.text(-1) == ""
    assert tiny.vocabulary.text(tiny.vocabulary.size) == ""
