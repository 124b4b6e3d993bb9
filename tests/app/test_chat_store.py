"""Conversations on disk: whole or not at all, and never two writers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from specdec_cli.app.chat import files
from specdec_cli.app.chat.conversation import Conversation, Message
from specdec_cli.app.chat.store import ConversationError, Store
from specdec_cli.errors import UsageError


def conversation(*questions: str) -> Conversation:
    found = Conversation("smollm2:135m")
    for question in questions or ("hello",):
        found = found.say(question).answered(Message("assistant", "yes"))
    return found


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "conversations")


def refused(store: Store, reference: str, *words: str) -> None:
    with pytest.raises(ConversationError) as caught:
        store.load(reference)
    error = caught.value
    for word in words:
        assert word in f"{error.message}\n{error.why}\n{error.fix}"


def test_what_was_saved_is_loaded(store: Store) -> None:
    saved = conversation("one", "two")
    store.save(saved)
    assert store.load(saved.id) == saved
    assert store.load(saved.id[:-1]) == saved
    assert store.latest() == saved


def test_nothing_said_makes_no_file(store: Store) -> None:
    store.save(Conversation("m").with_system("Be brief."))
    assert store.list() == ()
    saved = conversation()
    store.save(saved)
    store.save(saved.undo())  # but what was taken back must not come back
    assert store.load(saved.id).turns == 0


def test_the_latest_is_the_one_written_last(store: Store) -> None:
    first, second = conversation("first"), conversation("second " * 30)
    for age, saved in ((100, first), (50, second)):
        os.utime(store.save(saved), (1e9 - age, 1e9 - age))
    assert [entry.id for entry in store.list()] == [second.id, first.id]
    assert store.latest() == second
    assert len(store.list()[0].title) == 60
    os.utime(store.save(first), (1e9, 1e9))
    assert store.latest() == first


def test_a_file_from_elsewhere_is_a_copy(store: Store, tmp_path: Path) -> None:
    saved = conversation("one")
    path = store.save(saved)
    copy = store.load(str(path))
    assert copy.id != saved.id
    assert copy.messages == saved.messages
    store.save(copy.undo())
    assert store.load(saved.id) == saved


def test_a_renamed_file_goes_on_under_its_name(store: Store) -> None:
    saved = conversation()
    store.save(saved).rename(store.path("trip"))
    found = store.load("trip")
    assert (found.id, found.messages) == ("trip", saved.messages)


def test_missing_ones_are_named(store: Store) -> None:
    refused(store, "2020", "no conversation '2020'", "--list")
    refused(store, "", "no conversation ''")
    refused(store, "./away.jsonl", "away.jsonl", "No such file")
    with pytest.raises(ConversationError, match="no conversation to go on with"):
        store.latest()
    for name in ("ab1", "ab2"):
        store.save(Conversation("m", name).say("q"))
    refused(store, "ab", "2 conversations begin with 'ab'", "ab2, ab1")
    assert store.load("ab1").id == "ab1"


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "line 1 is not JSON"),
        (b"hello\n", "line 1 is not JSON"),
        (b"[" * 100_000, "line 1 is not JSON"),
        (b"\xff\xfe\x00", "byte 0 is not UTF-8"),
        (b"[]\n", "line 1 is not a JSON object"),
        (b'{"format": "specdec-chat/x"}', "no format specdec-chat/1"),
        (b'{"format": "specdec-chat/1"}', "line 1 has no id"),
        (b'HEAD\n{"role": "user"}', "line 2 has no text"),
        (b'HEAD\n{"role": "user", "content": "\\ud800"}', "line 2 has no text"),
        (b'HEAD\n{"role": ["user"], "content": ""}', "line 2 has no role"),
        (b'HEAD\n{"role": "user", "content": "q"}\n{"role": "assist', "line 3 is not JSON"),
        (b'HEAD\n{"role": "assistant", "content": ""}', "line 2 is out of turn: assistant"),
        (b'HEAD\n{"role": "user", "content": "", "partial": 1}', "line 2 has a partial"),
        (b'HEAD, "dropped": 1}', "line 1: `dropped`"),
        (b'{"format": "specdec-chat/2"}\n\xe2\x82\xac', "newer specdec"),
    ],
)
def test_damage_is_said_and_never_a_traceback(store: Store, content: bytes, word: str) -> None:
    head = b'{"format": "specdec-chat/1", "id": "a", "created": "2026", "model": "m"}'
    content = content.replace(b"HEAD,", head[:-1] + b",").replace(b"HEAD", head)
    good = conversation()
    store.save(good)
    store.path("bad").write_bytes(content)
    refused(store, "bad", word)
    problems = {entry.id: entry.problem for entry in store.list()}
    assert problems[good.id] == ""
    assert problems["bad"]
    store.save(good.say("still held"))
    assert store.path("bad").read_bytes() == content


HOLD = """
import sys
from pathlib import Path
from specdec_cli.app.chat.store import Store
store = Store(Path(sys.argv[1]))
store.load(sys.argv[2])
print("held", flush=True)
sys.stdin.read()
"""


def test_another_process_that_writes_it_is_respected(store: Store) -> None:
    saved = conversation("theirs")
    path = store.save(saved)
    store.release()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(store.directory), saved.id],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        before = path.read_bytes()
        refused(store, saved.id, "open elsewhere", str(path))
        with pytest.raises(ConversationError, match="open elsewhere"):
            store.save(saved.undo())
        assert path.read_bytes() == before
        assert store.list()[0].turns == 1  # looking is allowed
        assert store.load(str(path)).messages == saved.messages
        holder.kill()
    assert store.load(saved.id) == saved  # a killed process holds nothing


def test_holding_another_lets_go_of_the_first(store: Store) -> None:
    first, second, other = conversation("1"), conversation("2"), Store(store.directory)
    store.save(first)
    refused(other, first.id, "open elsewhere")
    store.save(second)
    assert other.load(first.id) == first


def test_a_full_disk_leaves_the_old_file(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = conversation("one")
    path = store.save(saved)

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", full)
        with pytest.raises(ConversationError) as caught:
            store.save(saved.say("two"))
        assert caught.value.why == "No space left on device"
    assert store.load(saved.id) == saved
    assert [file.name for file in store.directory.iterdir() if file.is_file()] == [path.name]
    store.save(saved.say("two"))
    assert store.load(saved.id).question == "two"


def test_reading_a_text_file(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"\xef\xbb\xbfna\xc3\xafve\r\n")
    assert files.read_text_file(path) == "naïve\r\n"


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"a\0b", "zero byte at 1"),
        (b"caf\xe9", "byte 3 is not UTF-8"),
        (b"\x89PNG\r\n", "byte 0 is not UTF-8"),
        ("text".encode("utf-16"), "byte 0 is not UTF-8"),
        (b"a" * (files.LARGEST + 1), "1,000,001 bytes"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path: Path, content: bytes, word: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        files.read_text_file(path)
    assert word in caught.value.why


@pytest.mark.parametrize("name", ["/dev/zero", "/", "/no/such/file", "a\0b", "~nobody-here/x"])
def test_what_is_no_file_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        files.read_text_file(Path(name))


def test_writing_asks_before_it_overwrites(tmp_path: Path) -> None:
    path = files.write_new_file(tmp_path / "chat.md", "one")
    with pytest.raises(UsageError, match="exists"):
        files.write_new_file(path, "two")
    assert path.read_text() == "one"
    files.write_new_file(path, "two", overwrite=True)
    assert path.read_text() == "two"
    with pytest.raises(UsageError, match="cannot write"):
        files.write_new_file(tmp_path / "no" / "such" / "chat.md", "one")
