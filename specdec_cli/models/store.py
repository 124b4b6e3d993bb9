"""Which model files are on this machine, and where new ones go."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from specdec_cli.engine.gguf import SPLIT_NAME
from specdec_cli.models.catalog import catalog, recognise


@dataclass(frozen=True)
class LocalModel:
    """A GGUF file that is here. Of a split model, the first part stands for all."""

    path: Path
    size: int  # bytes, all parts of a split model together
    catalog: str | None  # its catalog name
    source: Literal["models", "hub"]  # the models directory, or the shared hub cache
    reference: str  # a REF that names this file: catalog name, hf:user/repo/file, or file stem

    @property
    def draft_for(self) -> tuple[str, ...]:
        """Catalog models that this one is the draft of."""
        if self.catalog is None:
            return ()
        return tuple(model.name for model in catalog().values() if model.draft == self.catalog)


def models_directory() -> Path:
    """Where downloads land: $SPECDEC_MODELS, `models/` of a checkout, or the user's data."""
    if chosen := os.environ.get("SPECDEC_MODELS"):
        return Path(os.path.expanduser(chosen)).absolute()
    checkout = Path(__file__).resolve().parents[2]
    if is_checkout(checkout):
        return checkout / "models"
    from platformdirs import user_data_path

    return user_data_path("specdec") / "models"


def hub_cache() -> Path:
    """The Hugging Face cache, from the environment as it is now (the library reads it once)."""
    environment = os.environ
    cache = environment.get("HF_HUB_CACHE") or environment.get("HUGGINGFACE_HUB_CACHE")
    if not cache:
        base = environment.get("XDG_CACHE_HOME") or "~/.cache"
        cache = (environment.get("HF_HOME") or f"{base}/huggingface") + "/hub"
    return Path(os.path.expanduser(os.path.expandvars(cache)))


def installed() -> list[LocalModel]:
    """All GGUF models that are here: the models directory first, then the hub cache."""
    return [*in_directory(models_directory()), *in_hub(hub_cache())]


def find(name: str) -> LocalModel | None:
    """An installed model by catalog name, reference, file name or stem."""
    for model in installed():
        if name in (model.catalog, model.reference, model.path.name, model.path.stem):
            return model
    return None


def is_checkout(directory: Path) -> bool:
    try:
        return 'name = "specdec-cli"' in (directory / "pyproject.toml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def in_directory(directory: Path) -> Iterator[LocalModel]:
    for path, size in gguf_files(directory):
        known = recognise(path.name, size)
        yield LocalModel(
            path=path,
            size=size,
            catalog=known.name if known else None,
            source="models",
            reference=known.name if known else path.stem,
        )


def in_hub(cache: Path, repo: str | None = None) -> Iterator[LocalModel]:
    """Models of the hub cache, read where they are. The revision of `main` comes first."""
    pattern = "models--*" if repo is None else "models--" + repo.replace("/", "--")
    for folder in sorted(cache.glob(pattern)):
        name = folder.name.removeprefix("models--").replace("--", "/")
        for snapshot in snapshots(folder):
            for path, size in gguf_files(snapshot):
                known = recognise(path.name, size)
                file = path.relative_to(snapshot).as_posix()
                yield LocalModel(
                    path=path,
                    size=size,
                    catalog=known.name if known else None,
                    source="hub",
                    reference=known.name if known else f"hf:{name}/{file}",
                )


def snapshots(folder: Path) -> list[Path]:
    try:
        main = (folder / "refs" / "main").read_text().strip()
    except OSError:
        main = ""
    return sorted((folder / "snapshots").glob("*"), key=lambda path: (path.name != main, path.name))


def gguf_files(directory: Path) -> Iterator[tuple[Path, int]]:
    """GGUF files below a directory with their sizes, sorted; what cannot be read is not there."""
    found: dict[Path, int] = {}
    for path in sorted(directory.rglob("*.gguf")):
        try:
            if path.is_file():
                found[path] = path.stat().st_size
        except OSError:
            continue
    for path, size in found.items():
        split = SPLIT_NAME.match(path.name)
        if split is None:
            yield path, size
        elif int(split["part"]) == 1:
            stem = f"{split['stem']}-"
            parts = (
                other_size
                for other, other_size in found.items()
                if other.parent == path.parent
                and other.name.startswith(stem)
                and other.name.endswith(f"-of-{split['count']}.gguf")
            )
            yield path, sum(parts)
