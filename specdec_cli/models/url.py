"""A model from a plain address, into the models directory."""

from __future__ import annotations

from collections.abc import Iterator

from specdec_cli.engine.gguf import read_header
from specdec_cli.errors import DownloadError
from specdec_cli.models.events import Done, Event, Notice, Started, Verified
from specdec_cli.models.files import Part, acquire, prepare_directory, release, sha256_of
from specdec_cli.models.references import UrlReference
from specdec_cli.models.store import models_directory
from specdec_cli.models.transfer import fetch


def pull_url(wanted: UrlReference, sha256: str | None) -> Iterator[Event]:
    """Fetch a URL; `sha256` is checked where it is given, a GGUF header always."""
    final = models_directory() / wanted.file
    prepare_directory(final.parent)
    lock = yield from acquire(final)
    try:
        if final.exists():
            yield Notice(f"{final.name} is already here")
            if sha256 is not None:
                if (actual := sha256_of(final)) != sha256:
                    raise DownloadError(
                        f"{final} does not have the expected checksum",
                        why=f"sha256 is {actual}, expected {sha256}",
                        fix="remove that file, then pull again",
                    )
                yield Verified(sha256)
            else:
                read_header(final)
        else:
            part = Part(final)
            started = False
            for event in fetch(part, wanted.url, known_hash=sha256 is not None):
                if not started:
                    yield Started(wanted.file, event.total, None, "url")
                    started = True
                yield event
            yield from part.finish(sha256)
    finally:
        release(lock, final)
    yield Done(final)
