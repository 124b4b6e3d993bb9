"""Earlier answers on disk: private, bounded, and whole whatever happens to the file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from specdec_cli.app import memory

VOCABULARY = "a" * 64
ANSWER = list(range(10))
OTHER = list(range(50, 70))


def only_file() -> Path:
    (file,) = memory.directory().glob("*.json")
    return file


def test_what_was_added_comes_back_the_newest_last() -> None:
    assert memory.recall(VOCABULARY) == memory.Recalled([])
    for answer in (ANSWER, OTHER, ANSWER):  # the first again: it counts as new
        assert memory.add(VOCABULARY, answer) == ""
    assert memory.recall(VOCABULARY).texts == [OTHER, ANSWER]


def test_each_vocabulary_has_its_own() -> None:
    memory.add(VOCABULARY, ANSWER)
    memory.add("b" * 64, OTHER)
    assert memory.recall(VOCABULARY).texts == [ANSWER]
    assert [(kept.answers, kept.tokens) for kept in memory.kept()] == [(1, 10), (1, 20)]


def test_an_answer_of_a_few_tokens_is_not_worth_keeping() -> None:
    assert memory.add(VOCABULARY, ANSWER[: memory.LEAST - 1]) == ""
    assert not memory.directory().exists()


def test_the_oldest_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MOST", 35)
    memory.add(VOCABULARY, ANSWER)
    memory.add(VOCABULARY, OTHER)
    memory.add(VOCABULARY, [7] * 12)
    assert memory.recall(VOCABULARY).texts == [OTHER, [7] * 12]
    memory.add(VOCABULARY, list(range(100)))
    assert memory.recall(VOCABULARY).texts == [list(range(65, 100))]


def test_nobody_else_can_read_it() -> None:
    before = os.umask(0)
    try:
        memory.add(VOCABULARY, ANSWER)
        memory.add(VOCABULARY, OTHER)
    finally:
        os.umask(before)
    assert memory.directory().stat().st_mode & 0o777 == 0o700
    for file in memory.directory().iterdir():
        assert file.stat().st_mode & 0o777 == 0o600, file


@pytest.mark.parametrize(
    "damage",
    [
        b"", b"{", b"[]", b"\xff\xfe", b'{"version": 2, "texts": []}', b'{"texts": [[1]]}',
        b'{"version": 1, "texts": [[-5]]}', b'{"version": 1, "texts": [["x"]]}',
        b'{"version": 1, "texts": [[true]]}', b'{"version": 1, "texts": 3}', b"[" * 100_000,
    ],
)  # fmt: skip
def test_a_damaged_file_is_ignored_once_and_then_replaced(damage: bytes) -> None:
    memory.add(VOCABULARY, ANSWER)
    only_file().write_bytes(damage)
    recalled = memory.recall(VOCABULARY)
    assert recalled.texts == []
    assert "damaged" in recalled.problem
    assert memory.add(VOCABULARY, OTHER) == ""
    assert memory.recall(VOCABULARY) == memory.Recalled([OTHER])


def test_a_place_that_cannot_be_written_is_said_and_no_error() -> None:
    memory.directory().parent.mkdir(parents=True)
    memory.directory().write_text("a file where the directory should be")
    assert "cannot be written" in memory.add(VOCABULARY, ANSWER)
    assert memory.recall(VOCABULARY).texts == []


def test_two_processes_lose_nothing() -> None:
    code = (
        "from specdec_cli.app import memory; import sys\n"
        "for i in range(10):\n"
        f"    assert not memory.add({VOCABULARY!r}, [int(sys.argv[1]), *range(100 + i, 120 + i)])"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(n)]) for n in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    texts = memory.recall(VOCABULARY).texts
    assert len(texts) == 30
    for number in range(3):  # each in its own order
        assert [text[1] for text in texts if text[0] == number] == list(range(100, 110))
    assert not list(memory.directory().glob("*.part"))


def test_a_memory_in_use_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from filelock import FileLock

    memory.add(VOCABULARY, ANSWER)
    monkeypatch.setattr(memory, "PATIENCE", 0)
    with FileLock(only_file().with_suffix(".lock")):
        assert "in use" in memory.add(VOCABULARY, OTHER)
    assert memory.recall(VOCABULARY).texts == [ANSWER]


def test_clearing_leaves_nothing() -> None:
    memory.add(VOCABULARY, ANSWER)
    memory.add("b" * 64, OTHER)
    assert memory.clear() == 2
    assert list(memory.directory().iterdir()) == []
    assert memory.clear() == 0
    assert list(memory.kept()) == []
