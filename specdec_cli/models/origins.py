"""What a model file is: its checksum, and what it was made from if it was made here."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from platformdirs import user_cache_path

from specdec_cli.models.files import sha256_of

WIDTHS = {"F32": 32, "F16": 16, "BF16": 16, "Q8_0": 8}  # bits; all others have less
ENDS = 1 << 20  # bytes: the header with the vocabulary, and the last weights


@dataclass(frozen=True, slots=True)
class Origin:
    """A file that llama.cpp's quantiser made from another one.

    Attributes:
        source: file name of the model it was made from.
        source_sha256: checksum of that file.
        source_type: its quantisation, for example `Q4_K_M`.
        type: the quantisation of this file.
        source_origin: what that file was made from in its turn, in words.
        draft_of: fingerprint of the model that it is the self draft of.
    """

    source: str
    source_sha256: str
    source_type: str
    type: str
    source_origin: str | None = None
    draft_of: str | None = None

    def words(self) -> str:
        source = ", ".join(filter(None, (self.source_type, self.source_origin)))
        words = f"made from {self.source} ({source})"
        return f"{words}: its values at {self.type} cost" if self.enlarged else words

    @property
    def enlarged(self) -> bool:
        """Does it cost more than what it knows? Numbers from such a file must say so."""
        return WIDTHS.get(self.type, 0) > WIDTHS.get(self.source_type, 0)


def record(path: Path, origin: Origin) -> None:
    """Keep the origin beside the file."""
    note_of(path).write_text(json.dumps(asdict(origin), indent=1) + "\n", encoding="utf-8")


def origin(path: Path) -> Origin | None:
    """What was recorded; None for a file from elsewhere, or a note that cannot be read."""
    try:
        return Origin(**json.loads(note_of(path).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def checksum(path: Path) -> str:
    """sha256 of the file, remembered until its size or time changes: 2 GB take seconds."""
    status = path.stat()
    key = repr((str(path.resolve()), status.st_size, status.st_mtime_ns))
    memory = user_cache_path("specdec") / "sha256" / sha256(key.encode()).hexdigest()[:16]
    try:
        known = memory.read_text()
    except (OSError, ValueError):
        known = ""
    if re.fullmatch("[0-9a-f]{64}", known):
        return known
    found = sha256_of(path)
    with suppress(OSError):  # a read-only cache costs time, nothing else
        memory.parent.mkdir(parents=True, exist_ok=True)
        memory.write_text(found)
    return found


def fingerprint(path: Path) -> str:
    """Tells model files apart at once: a hash of the size, the beginning and the end."""
    size = path.stat().st_size
    digest = sha256(str(size).encode())
    with path.open("rb") as file:
        digest.update(file.read(ENDS))
        file.seek(max(0, size - ENDS))
        digest.update(file.read(ENDS))
    return digest.hexdigest()[:16]


def note_of(path: Path) -> Path:
    return path.with_name(path.name + ".origin.json")
