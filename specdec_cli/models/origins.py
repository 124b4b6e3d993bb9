"""What a model file is: its checksum, and what it was made from if it was made here."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from platformdirs import user_cache_path

from specdec_cli.models.files import sha256_of


@dataclass(frozen=True, slots=True)
class Origin:
    """A file that llama.cpp's quantiser made from another one.

    Attributes:
        source: file name of the model it was made from.
        source_sha256: checksum of that file.
        source_type: its quantisation, for example `Q4_K - Medium`.
        type: the quantisation of this file.
    """

    source: str
    source_sha256: str
    source_type: str
    type: str

    def words(self) -> str:
        words = f"made from {self.source} ({self.source_type})"
        return f"{words}: its values at {self.type} cost" if self.enlarged else words

    @property
    def enlarged(self) -> bool:
        """Does it cost more than what it knows? Numbers from such a file must say so."""
        return self.type in ("BF16", "F16", "F32", "Q8_0")


def record(path: Path, origin: Origin) -> None:
    """Keep the origin beside the file."""
    _note(path).write_text(json.dumps(asdict(origin), indent=1) + "\n", encoding="utf-8")


def origin(path: Path) -> Origin | None:
    """What was recorded; None for a file from elsewhere, or a note that cannot be read."""
    try:
        return Origin(**json.loads(_note(path).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def checksum(path: Path) -> str:
    """sha256 of the file, remembered until its size or time changes: 2 GB take seconds."""
    status = path.stat()
    key = repr((str(path.resolve()), status.st_size, status.st_mtime_ns))
    memory = user_cache_path("specdec") / "sha256" / sha256(key.encode()).hexdigest()[:16]
    try:
        known = memory.read_text()
    except OSError:
        known = ""
    if len(known) == 64:
        return known
    found = sha256_of(path)
    with suppress(OSError):  # a read-only cache costs time, nothing else
        memory.parent.mkdir(parents=True, exist_ok=True)
        memory.write_text(found)
    return found


def _note(path: Path) -> Path:
    return path.with_name(path.name + ".origin.json")
