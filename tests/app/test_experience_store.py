"""The record of what passes cost, in the user's cache."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest
from gguf_files import write_tiny

from specdec_cli.app import experience_store
from specdec_cli.app.experience_store import VERSION, Setting, keep, recall
from specdec_cli.core.experience import Experience, Kind
from specdec_cli.core.pass_seconds import PassSeconds
from specdec_cli.engine.llama.numerics import FASTEST


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(write_tiny(tmp_path / "target.gguf"), 2, 0, 0, "auto", FASTEST)


def experience(seconds: float = 0.1) -> Experience:
    found = Experience(PassSeconds({1: seconds, 4: 2 * seconds}))
    found.of("suffix", "greedy", Kind.suffix).saw([0.9], [1.0])
    return found


def record() -> Path:
    """The one file there is."""
    (path,) = Path(os.environ["HOME"]).glob("**/experience/*")
    return path


def one_row(setting: Setting) -> float | None:
    verify = recall(setting).experience.verify
    return verify and verify(1)


def test_nothing_is_known_at_first_and_that_is_no_problem(setting: Setting) -> None:
    found = recall(setting)
    assert (found.experience, found.problem) == (Experience(), "")


def test_what_was_kept_is_recalled(setting: Setting) -> None:
    assert keep(setting, experience()) == ""
    found = recall(setting)
    assert found.problem == ""
    assert found.experience.as_dict() == experience().as_dict()


def test_nothing_of_the_text_or_the_prompt_is_written(setting: Setting) -> None:
    keep(setting, experience())
    assert json.loads(record().read_text()).keys() == {
        "version", "verify", "drafts", "acceptance",
    }  # fmt: skip


def test_the_last_one_to_write_is_believed_and_leaves_nothing_else_behind(
    setting: Setting,
) -> None:
    keep(setting, experience(0.1))
    keep(setting, experience(0.2))
    assert one_row(setting) == 0.2
    assert record().suffix == ".json"


@pytest.mark.parametrize(
    "change",
    [{"threads": 3}, {"flash_attention": "off"}, {"numerics": replace(FASTEST, repacked=False)}],
    ids=str,
)
def test_other_circumstances_have_a_record_of_their_own(
    setting: Setting, change: dict[str, object]
) -> None:
    keep(setting, experience())
    assert one_row(replace(setting, **change)) is None  # type: ignore[arg-type]
    assert one_row(setting) == 0.1


def test_another_model_under_the_same_name_is_another_model(setting: Setting) -> None:
    keep(setting, experience())
    write_tiny(setting.target, seed=5, extra_tokens=64)
    assert one_row(setting) is None


DAMAGED = {
    "empty": b"",
    "cut": b'{"version": %d, "verify": {"1"' % VERSION,
    "binary": bytes(range(256)),
    "a list": b"[]",
    "null": b"null",
    "a number": b"1",
    "no version": b"{}",
    "no costs": b'{"version": %d, "verify": {}, "drafts": {}, "acceptance": []}' % VERSION,
    "endless": b'{"version": %d, "verify": {"1": Infinity}, "drafts": {}, "acceptance": []}'
    % VERSION,
    "rows beyond counting": b'{"version": %d, "verify": {"1": 1e999}, "drafts": {}}' % VERSION,
    "deep": b"[" * 200_000,
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_record_is_no_error_and_is_replaced(setting: Setting, damage: bytes) -> None:
    keep(setting, experience())
    record().write_bytes(damage)
    found = recall(setting)
    assert found.experience == Experience()
    assert "damaged" in found.problem
    assert keep(setting, experience(0.3)) == ""
    assert one_row(setting) == 0.3


def test_a_record_of_another_version_is_not_read(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(setting, experience())
    monkeypatch.setattr(experience_store, "VERSION", experience_store.VERSION + 1)
    found = recall(setting)
    assert found.experience == Experience()
    assert "another version" in found.problem


def test_a_record_that_cannot_be_read_is_told_of(setting: Setting) -> None:
    keep(setting, experience())
    path = record()
    path.unlink()
    path.mkdir()  # what even the superuser cannot read as a file
    assert "cannot be read" in recall(setting).problem
    assert "cannot be kept" in keep(setting, experience())
    assert list(path.parent.iterdir()) == [path]


@contextmanager
def in_the_way(path: Path) -> Iterator[None]:
    """A file where a directory should be, as nobody can write into."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    yield
    path.unlink()


def test_a_directory_that_cannot_be_written_is_told_of_and_is_no_error(setting: Setting) -> None:
    keep(setting, experience())
    directory = record().parent
    record().unlink()
    directory.rmdir()
    with in_the_way(directory):
        assert "cannot be kept" in keep(setting, experience())
        assert recall(setting).experience == Experience()
    assert keep(setting, experience()) == ""


def _write_often(setting: Setting, seconds: float) -> None:
    for _ in range(60):
        assert keep(setting, experience(seconds)) == ""


def test_two_writers_never_leave_a_mixture(setting: Setting) -> None:
    keep(setting, experience(0.1))
    processes = get_context("fork")
    writers = [processes.Process(target=_write_often, args=(setting, s)) for s in (0.1, 0.2)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        found = recall(setting)
        assert found.problem == ""
        assert found.experience.as_dict() in (experience(0.1).as_dict(), experience(0.2).as_dict())
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert record().suffix == ".json"
