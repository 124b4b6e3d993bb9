"""A cheap look at a GGUF file, before C code sees it."""

from __future__ import annotations

import mmap
import os
import re
from pathlib import Path

from specdec_cli.engine.gguf_header import GGUFHeader
from specdec_cli.engine.gguf_reader import PREFIX, HeaderReader, check_start
from specdec_cli.errors import ModelFileError

SPLIT_NAME = re.compile(r"^(?P<stem>.+)-(?P<part>\d{5})-of-(?P<count>\d{5})\.gguf$")


def read_header(path: Path) -> GGUFHeader:
    """Check a GGUF file and read its header, in well under 0.15 s for 150,000 tokens.

    Raises ModelFileError: missing, a directory, unreadable, not GGUF, damaged, truncated, or a
    split model of which parts are missing.
    """
    path = Path(path)
    if os.path.isdir(path):
        raise ModelFileError(
            f"{path} is a directory",
            why="a model is one .gguf file",
            fix="name the file inside it",
        )
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            check_start(path, file.read(PREFIX.size), size)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                header = HeaderReader(path, data, size).read()
    except FileNotFoundError:
        raise ModelFileError(
            f"no model file at {path}",
            why="there is no such file",
            fix="check the path, or see what is installed: specdec list",
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ModelFileError(
            f"cannot read {path}",
            why=reason or type(error).__name__,
            fix="check the file and its permissions",
        ) from None
    for part in split_parts(path, header.split_count):
        if not part.exists():
            raise ModelFileError(
                f"{path.name} is one of {header.split_count} parts, and {part.name} is missing",
                why="a split model needs all its parts in one directory",
                fix="download the missing part beside it",
            )
    return header


def split_parts(path: Path, count: int) -> list[Path]:
    """All files of a split model, in order; only `path` itself where it is not split."""
    match = SPLIT_NAME.match(path.name)
    if count <= 1 or count > 99_999 or not match:
        return [path]
    stem = match["stem"]
    return [path.with_name(f"{stem}-{n:05}-of-{count:05}.gguf") for n in range(1, count + 1)]
