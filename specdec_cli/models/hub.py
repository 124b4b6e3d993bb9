"""A model from the Hugging Face hub, into the cache that all hub programs share.

The library answers what a repository holds and owns the layout of the cache. The bytes come
through `transfer`, because the library throws an interrupted download away: here a part stays
beside the blobs, its sha256 is checked against its content, and only then it becomes the blob
that the library links under the file's name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from specdec_cli.engine.gguf import SPLIT_NAME, split_parts
from specdec_cli.errors import DownloadError
from specdec_cli.models.events import Done, Event, Progress, Started
from specdec_cli.models.files import Part, acquire, prepare_directory, release
from specdec_cli.models.quants import matching, models_among, quant_of
from specdec_cli.models.references import HubReference
from specdec_cli.models.store import hub_cache
from specdec_cli.models.transfer import Unavailable, fetch

PROBE_SECONDS = 5.0


@dataclass(frozen=True)
class HubFile:
    name: str
    size: int
    etag: str  # names the blob in the cache; the sha256 of a large file
    sha256: str | None


@dataclass(frozen=True)
class Repository:
    repo: str
    revision: str  # as asked for: a branch or a commit
    commit: str
    licence: str | None
    files: tuple[HubFile, ...]


def pull_hub(name: str, repository: Repository, wanted: list[HubFile]) -> Iterator[Event]:
    """Fetch files of a repository (the parts of one model), in order."""
    total = sum(file.size for file in wanted)
    before = 0
    paths: list[Path] = []
    started = False
    for file in wanted:
        for event in pull_file(repository, file):
            if isinstance(event, Progress):
                if not started:
                    yield Started(name, total, repository.licence, "hub")
                    started = True
                yield Progress(before + event.done, total)
            elif isinstance(event, Done):
                paths.append(event.path)
            else:
                yield event
        before += file.size
    yield Done(paths[0])


def pull_file(repository: Repository, file: HubFile) -> Iterator[Event]:
    """One file into the blobs of the cache, then under its name in the snapshot."""
    folder = "models--" + repository.repo.replace("/", "--")
    blob = hub_cache() / folder / "blobs" / file.etag
    prepare_directory(blob.parent)
    lock = yield from acquire(blob)
    try:
        if not blob.exists():
            part = Part(blob)
            url = f"{endpoint()}/{repository.repo}/resolve/{repository.commit}/{file.name}"
            yield from fetch(
                part,
                url,
                size=file.size,
                known_hash=file.sha256 is not None,
                headers=authorisation(),
            )
            yield from part.finish(file.sha256)
        path = link(repository, file)
    finally:
        release(lock, blob)
    yield Done(path)


def link(repository: Repository, file: HubFile) -> Path:
    """Have the library put the finished blob under the file's name, as it does with its own."""
    from httpx2 import HTTPError
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(
            hf_hub_download(
                repository.repo,
                file.name,
                revision=repository.revision,
                cache_dir=hub_cache(),
                endpoint=endpoint(),
                etag_timeout=PROBE_SECONDS,
            )
        )
    except (HTTPError, HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise DownloadError(
            f"{file.name} came, but could not be put in place",
            why=first_line(error),
            fix="run the same command again: nothing is downloaded twice",
        ) from None


def repository(repo: str, revision: str = "main") -> Repository:
    """What a repository holds. Raises Unavailable within seconds where the hub is out of reach."""
    from httpx2 import HTTPError
    from huggingface_hub import HfApi
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    host = urlsplit(endpoint()).netloc
    try:
        info = HfApi(endpoint=endpoint()).model_info(
            repo, revision=revision, files_metadata=True, timeout=PROBE_SECONDS
        )
        return Repository(
            repo=repo,
            revision=revision,
            commit=str(info.sha),
            licence=next(
                (tag.partition(":")[2] for tag in info.tags or () if tag.startswith("license:")),
                None,
            ),
            files=tuple(
                HubFile(
                    name=entry.rfilename,
                    size=entry.lfs.size if entry.lfs else entry.size or 0,
                    etag=entry.lfs.sha256 if entry.lfs else entry.blob_id or "",
                    sha256=entry.lfs.sha256 if entry.lfs else None,
                )
                for entry in info.siblings or ()
                if entry.rfilename.endswith(".gguf")
            ),
        )
    except GatedRepoError:
        raise Unavailable(
            f"access to {repo} is restricted",
            why="its authors ask everybody to accept their terms first",
            fix=f"accept them at {endpoint()}/{repo}, then set HF_TOKEN",
        ) from None
    except RevisionNotFoundError:
        raise Unavailable(
            f"{repo} has no revision {revision}", why=f"{host} says so", fix="try another one"
        ) from None
    except RepositoryNotFoundError:
        raise Unavailable(
            f"no repository {repo} at {host}",
            why="it does not exist, or it is private",
            fix="check the name, or set HF_TOKEN for a private one",
        ) from None
    except (
        HTTPError,
        HfHubHTTPError,
        OfflineModeIsEnabled,
        ValueError,
        KeyError,
        TypeError,
    ) as error:
        raise Unavailable(
            f"cannot reach {host}",
            why=first_line(error),
            fix="check the network, then try again",
        ) from None


def choose(wanted: HubReference, files: tuple[HubFile, ...]) -> list[HubFile]:
    """The files of the model that a reference means: one, or all parts of a split model."""
    by_name = {file.name: file for file in files}
    if wanted.file is not None:
        names = [wanted.file] if wanted.file in by_name else []
    else:
        names = matching(by_name, wanted.quant)
    models = models_among(by_name)
    if len(names) != 1:
        quants = sorted({quant_of(name) or name for name in models})
        what = wanted.file or wanted.quant or "Q4_K_M"
        raise DownloadError(
            f"{wanted.repo} has {'several files' if names else 'no file'} for {what}",
            why=f"it has {', '.join(names or quants) or 'no GGUF files at all'}",
            fix=f"name one: hf:{wanted.repo}{example(names, quants)}",
        )
    first = Path(names[0])
    split = SPLIT_NAME.match(first.name)
    parts = split_parts(first, int(split["count"])) if split else [first]
    missing = [part.as_posix() for part in parts if part.as_posix() not in by_name]
    if missing:
        raise DownloadError(
            f"{wanted.repo} lacks parts of this model",
            why=f"missing: {', '.join(missing)}",
            fix="choose another quantisation",
        )
    return [by_name[part.as_posix()] for part in parts]


def example(names: list[str], quants: list[str]) -> str:
    if names:
        return f"/{names[0]}"
    return f":{quants[0]}" if quants else ":QUANT"


def endpoint() -> str:
    """Read at each call; the library reads it once when it is imported."""
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def authorisation() -> dict[str, str]:
    from huggingface_hub import get_token

    token = get_token()
    return {"Authorization": f"Bearer {token}"} if token else {}


def first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
