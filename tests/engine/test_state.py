"""A saved memo is the memo: the same bits follow, and damage never reaches llama.cpp."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from contexts import SIZE, Countdown, context

from specdec_cli.engine.language_model import Interrupted
from specdec_cli.engine.llama import state
from specdec_cli.engine.llama.context import LlamaContext
from specdec_cli.engine.llama.model import LlamaModel

TOKENS = list(range(20, 20 + 30))
CONDITIONS = {"model": "tiny", "context": SIZE}


def saved(path: Path, model: LlamaModel, tokens: list[int] = TOKENS) -> LlamaContext:
    """The context that was saved, still open."""
    used = context(model, pairs=True, flash_attention="off")
    used.logits(tokens, last=1)
    state.write(path, used, CONDITIONS)
    return used


@pytest.mark.parametrize("name", ["tiny", "mamba", "real"])
def test_the_same_bits_follow(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, read_anew: list[int]
) -> None:
    model: LlamaModel = request.getfixturevalue(name)
    used = saved(tmp_path / "state", model)
    head = state.read_head(tmp_path / "state")
    assert (head.conditions, head.memo) == (CONDITIONS, TOKENS)
    fresh = context(model, pairs=True, flash_attention="off")
    state.restore(tmp_path / "state", head, fresh)
    assert fresh.cached([*TOKENS, 7, 8]) == len(TOKENS)
    longer = [*TOKENS, 7, 8]
    expected = used.logits(longer, last=2).copy()
    read_anew.clear()
    np.testing.assert_array_equal(fresh.logits(longer, last=2), expected)
    assert read_anew == [2]
    used.close()
    fresh.close()


def test_a_restored_memo_can_be_cut_like_any_other(tmp_path: Path, tiny: LlamaModel) -> None:
    used = saved(tmp_path / "state", tiny)
    fresh = context(tiny, pairs=True, flash_attention="off")
    fresh.logits([5, 6, 7], last=1)  # what it had read before is gone
    state.restore(tmp_path / "state", state.read_head(tmp_path / "state"), fresh)
    assert fresh.cached([5, 6, 7]) == 0
    other = [*TOKENS[:11], 99, 98]
    expected = used.logits(other, last=2).copy()
    np.testing.assert_array_equal(fresh.logits(other, last=2), expected)
    used.close()
    fresh.close()


def test_cells_of_an_interrupted_evaluation_are_not_saved(tmp_path: Path, tiny: LlamaModel) -> None:
    countdown = Countdown()
    used = context(tiny, stop=countdown)
    used.logits(TOKENS[:10], last=1)
    countdown.left = 20
    with pytest.raises(Interrupted):
        used.logits(TOKENS, last=1)
    state.write(tmp_path / "state", used, CONDITIONS)
    head = state.read_head(tmp_path / "state")
    assert head.memo == TOKENS[:10]
    ten = context(tiny)
    ten.logits(TOKENS[:10], last=1)
    assert head.size == len(ten.state())
    used.close()
    ten.close()


def test_the_row_that_filled_up_a_pair_is_not_saved(tmp_path: Path, tiny: LlamaModel) -> None:
    pair, alone = context(tiny, pairs=True), context(tiny)
    for each in (pair, alone):
        each.logits([5], last=1)
    assert pair.memo == alone.memo == [5]
    assert len(pair.state()) == len(alone.state())
    pair.close()
    alone.close()


DAMAGE: list[tuple[Callable[[bytes], bytes], str]] = [
    (lambda data: b"", "another format"),
    (lambda data: data[:20], "head is unreadable"),
    (lambda data: data[:-1], "size"),
    (lambda data: data + b"x", "size"),
    (lambda data: data.replace(b"state/1", b"state/2"), "another format"),
    (lambda data: data[:16] + b"\xff" * 8 + data[24:], "head is too long"),
    (lambda data: data.replace(b'"tokens": 30', b'"tokens": -1'), "size"),
    (lambda data: data.replace(b'"tokens"', b'"tokenz"'), "head is unreadable"),
    (lambda data: data.replace(b"tiny", b"tinx"), "checksum"),
    (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "checksum"),
    (lambda data: data.replace(bytes([21, 0, 0, 0]), bytes([22, 0, 0, 0]), 1), "checksum"),
]


@pytest.mark.parametrize(("damage", "word"), DAMAGE)
def test_damage_is_found_before_llama_cpp_sees_it(
    tmp_path: Path, tiny: LlamaModel, damage: Callable[[bytes], bytes], word: str
) -> None:
    path = tmp_path / "state"
    used = saved(path, tiny)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(state.Corrupt, match=word):
        state.restore(path, state.read_head(path), used)
    assert used.cached(TOKENS) == len(TOKENS)  # and the context is as it was
    used.close()


def test_a_state_of_another_shape_is_refused(tmp_path: Path, tiny: LlamaModel) -> None:
    saved(tmp_path / "state", tiny).close()
    other = context(tiny, size=16)  # 30 tokens do not fit
    with pytest.raises(state.Corrupt, match="does not take it"):
        state.restore(tmp_path / "state", state.read_head(tmp_path / "state"), other)
    assert other.cached(TOKENS) == 0
    other.logits(TOKENS[:5], last=1)
    other.close()


def test_a_full_disk_leaves_nothing(
    tmp_path: Path, tiny: LlamaModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        saved(tmp_path / "state", tiny)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == []
