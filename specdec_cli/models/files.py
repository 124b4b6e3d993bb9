"""What every download does with the disk: look before, lock, hash, and finish in one step."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from specdec_cli.engine.gguf import read_header
from specdec_cli.errors import DownloadError, ModelFileError
from specdec_cli.models.events import Event, Notice, Verified
from specdec_cli.models.store import models_directory

if TYPE_CHECKING:
    from filelock import BaseFileLock


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn what the disk refuses into an error for a person."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DownloadError(
                f"the disk is full at {path.parent}",
                why="what came so far is kept",
                fix="free some space, then run the same command: it goes on from there",
            ) from None
        raise DownloadError(
            f"cannot write to {path.parent}",
            why=error.strerror or str(error),
            fix=f"check its permissions, or set {setting(path)} to another directory",
        ) from None


def prepare_directory(directory: Path) -> None:
    """Make sure of a writable directory before a byte is asked for."""
    probe = directory / f".write-{os.getpid()}"
    with disk_errors(probe):
        directory.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()


def check_space(directory: Path, needed: int) -> None:
    """Stop before a download that cannot fit, with 5 % to spare."""
    needed += needed // 20
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise DownloadError(
            f"not enough disk space at {directory}",
            why=f"{readable(needed)} needed, {readable(free)} free",
            fix=f"free {readable(needed - free)} or set {setting(directory)} to another disk",
        )


def setting(path: Path) -> str:
    """The environment variable that decides where such a file goes."""
    return "SPECDEC_MODELS" if path.is_relative_to(models_directory()) else "HF_HOME"


def readable(size: int) -> str:
    return f"{size / 1e9:.2f} GB" if size >= 10_000_000 else f"{size / 1e6:.2f} MB"


@dataclass(frozen=True)
class Part:
    """A file on its way to `final`: its bytes so far, and a note on where they came from."""

    final: Path

    @property
    def path(self) -> Path:
        return self.final.with_name(self.final.name + ".part")

    @property
    def note_path(self) -> Path:
        return self.final.with_name(self.final.name + ".part.json")

    def note(self) -> dict[str, Any]:
        """What an earlier pull noted; empty where there is none or it cannot be read."""
        try:
            note = json.loads(self.note_path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return note if isinstance(note, dict) else {}

    def save_note(self, note: dict[str, Any]) -> None:
        """Replaced in one step: a note cut in half would cost the whole download."""
        with disk_errors(self.final):
            new = self.note_path.with_name(self.note_path.name + ".new")
            new.write_text(json.dumps(note), encoding="utf-8")
            new.replace(self.note_path)

    @contextmanager
    def append(self, at: int) -> Iterator[BinaryIO]:
        """The file, cut to the `at` bytes that are known to be good, open for more."""
        with disk_errors(self.final), self.path.open("ab") as file:
            file.truncate(at)
            yield file

    def set_aside(self) -> Path:
        """Keep what turned out to be wrong for a look, out of the way of the next try."""
        bad = self.final.with_name(self.final.name + ".bad")
        with disk_errors(self.final):
            self.path.replace(bad)
            self.note_path.unlink(missing_ok=True)
        return bad

    def finish(self, sha256: str | None) -> Iterator[Event]:
        """Check the whole file, then make it appear under its name in one step."""
        if sha256 is not None:
            actual = sha256_of(self.path)
            if actual != sha256:
                bad = self.set_aside()
                raise DownloadError(
                    f"{self.final.name} does not have the expected checksum",
                    why=f"sha256 is {actual}, expected {sha256}",
                    fix=f"pull it again; what came is kept as {bad}",
                )
        try:
            read_header(self.path)
        except ModelFileError as error:
            bad = self.set_aside()
            raise DownloadError(
                f"what came is not a usable model: {self.final.name}",
                why=error.why,
                fix=f"check the address; what came is kept as {bad}",
            ) from None
        with disk_errors(self.final):
            with self.path.open("rb+") as file:
                os.fsync(file.fileno())
            self.path.replace(self.final)
            self.note_path.unlink(missing_ok=True)
        if sha256 is not None:
            yield Verified(sha256)


def write(file: BinaryIO, data: bytes) -> None:
    """The one place where model bytes reach the disk."""
    file.write(data)


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def acquire(final: Path) -> Generator[Event, None, BaseFileLock]:
    """Take the lock of one download; the second pull of a file waits here for the first."""
    from filelock import FileLock, Timeout

    with disk_errors(final):
        final.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(final.with_name(f".{final.name}.lock"), thread_local=False)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            yield Notice(f"another pull of {final.name} is running; waiting for it")
            lock.acquire()
    return lock


def release(lock: BaseFileLock, final: Path) -> None:
    """Give the lock back, and tidy its file away once there is nothing left to race for."""
    lock.release()
    if final.exists():
        with suppress(OSError):
            Path(lock.lock_file).unlink()
