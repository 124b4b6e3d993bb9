"""What a model REF means: a path, a catalog name, `hf:user/repo[:QUANT]`, or an installed file."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from difflib import get_close_matches
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import unquote, urlsplit

from specdec_cli.errors import ModelFileError, UsageError
from specdec_cli.models.catalog import CatalogModel, catalog
from specdec_cli.models.quants import matching
from specdec_cli.models.store import (
    LocalModel,
    find,
    hub_cache,
    in_hub,
    installed,
    models_directory,
)

HUB = re.compile(
    r"hf:(?P<repo>\w[\w.-]*/\w[\w.-]*)(?::(?P<quant>[\w.-]+)|/(?P<file>.+\.gguf))?", re.ASCII
)
SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class HubReference:
    """`hf:user/repo[:QUANT]` or `hf:user/repo/file.gguf`."""

    repo: str
    quant: str | None
    file: str | None


@dataclass(frozen=True)
class UrlReference:
    """`https://host/model.gguf[#sha256=...]`."""

    url: str
    file: str
    sha256: str | None


Remote = CatalogModel | HubReference | UrlReference


@dataclass(frozen=True)
class Missing:
    """A model that is not here but that `pull` can fetch."""

    reference: str
    size: int | None  # bytes, where the catalog knows


def resolve(reference: str) -> Path | Missing:
    """The file that a REF names, without asking the network.

    Raises ModelFileError (with the nearest names) for what is neither here nor to be had, and
    UsageError for a malformed `hf:` reference or URL.
    """
    remote = parse(reference)
    if remote is not None:
        local = local_copy(remote)
        size = remote.size if isinstance(remote, CatalogModel) else None
        return local.path if local else Missing(reference, size)
    # os.path and not Path: a name too long for the system, or a ~user that nobody is, is no path.
    path = os.path.expanduser(reference)
    if os.path.exists(path):
        return Path(path)
    if model := find(reference):
        return model.path
    raise unknown(reference)


def parse(reference: str) -> Remote | None:
    """What a reference asks for, where it is one that `pull` can fetch."""
    if model := catalog().get(reference):
        return model
    if reference.startswith("hf:"):
        return hub_reference(reference)
    if reference.startswith(("https://", "http://")):
        return url_reference(reference)
    return None


def local_copy(remote: Remote) -> LocalModel | None:
    """The installed file of a remote reference, found offline."""
    match remote:
        case CatalogModel():
            return find(remote.name)
        case UrlReference():
            path = models_directory() / remote.file
            return next((model for model in installed() if model.path == path), None)
        case HubReference():
            models = list(in_hub(hub_cache(), remote.repo))
            if remote.file is not None:
                suffix = "/" + remote.file
                return next((m for m in models if m.path.as_posix().endswith(suffix)), None)
            # The revision of `main` comes first in the list, so it wins here.
            by_name = {model.path.name: model for model in reversed(models)}
            names = matching(by_name, remote.quant)
            return by_name[names[0]] if len(names) == 1 else None


def hub_reference(reference: str) -> HubReference:
    match = HUB.fullmatch(reference)
    if match is None or {"", ".", ".."} & set((match["file"] or "file").split("/")):
        raise UsageError(
            f"cannot read the model reference {reference}",
            why="a hub model is hf:user/repo, hf:user/repo:QUANT or hf:user/repo/file.gguf",
            fix="for example hf:Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF:Q4_K_M",
        )
    return HubReference(match["repo"], match["quant"], match["file"])


def url_reference(reference: str) -> UrlReference:
    try:
        parts = urlsplit(reference)
    except ValueError as error:
        raise UsageError(
            f"{reference} is not an address", why=str(error), fix="copy it again"
        ) from None
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise UsageError(
            f"will not fetch a model over plain http from {parts.hostname}",
            why="anybody on the way could change it",
            fix="use https://",
        )
    file = unquote(parts.path).rpartition("/")[2]
    if not file.endswith(".gguf") or file.startswith(".") or "\\" in file or "\0" in file:
        raise UsageError(
            f"{reference} does not name a .gguf file",
            why="the last part of the address becomes the file name",
            fix="give the address of the .gguf file itself",
        )
    name, _, sha256 = parts.fragment.partition("=")
    checked = checksum(sha256) if name == "sha256" else None
    return UrlReference(parts._replace(fragment="").geturl(), file, checked)


def checksum(text: str) -> str:
    """A sha256 as 64 lower-case hex digits; UsageError for anything else."""
    lowered = text.strip().lower()
    if not SHA256.fullmatch(lowered):
        raise UsageError(
            f"not a sha256: {text}", why="it has 64 hexadecimal digits", fix="copy it again"
        )
    return lowered


def is_loopback(host: str | None) -> bool:
    if host is None:
        return False
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def unknown(reference: str) -> ModelFileError:
    """The error for a name that means nothing, with the nearest ones that do."""
    names = [*catalog(), *(model.reference for model in installed())]
    path = Path(os.path.expanduser(reference))
    looks_like_path = reference.endswith(".gguf") or path.parent != Path()
    if looks_like_path:
        names += [str(path.with_name(other.name)) for other in siblings(path)]
    completed = [name for name in names if reference and name.startswith(reference)]
    similar = get_close_matches(reference, names, n=3, cutoff=0.5)
    nearest = list(dict.fromkeys([*completed, *similar]))[:3]
    return ModelFileError(
        f"no model file at {reference}" if looks_like_path else f"unknown model {reference}",
        why=f"nearest: {', '.join(nearest)}" if nearest else "and nothing has a similar name",
        fix="see what there is: specdec list",
    )


def siblings(path: Path) -> list[Path]:
    try:
        return sorted(path.parent.glob("*.gguf"))
    except (OSError, ValueError):
        return []
