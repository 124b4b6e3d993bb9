"""What a download tells whoever renders it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Started:
    """The first bytes are about to come."""

    name: str
    size: int | None  # bytes, None where the server does not say
    licence: str | None
    source: str  # "hub", "mirror" or "url"


@dataclass(frozen=True)
class Progress:
    """Bytes that are here so far, those of an earlier interrupted pull included."""

    done: int
    total: int | None


@dataclass(frozen=True)
class Notice:
    """One line worth telling a person."""

    text: str


@dataclass(frozen=True)
class Verified:
    """The whole file has the checksum that was expected."""

    sha256: str


@dataclass(frozen=True)
class Done:
    """The last event: the model is at `path`."""

    path: Path


Event = Started | Progress | Notice | Verified | Done
