"""One file over HTTP into a part file, going on where an earlier try stopped."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from specdec_cli.errors import DownloadError, UsageError
from specdec_cli.models.events import Progress
from specdec_cli.models.files import Part, check_space, write
from specdec_cli.models.references import is_loopback

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS, READ_SECONDS = 5.0, 30.0
RETRY_SECONDS = (0.5, 2.0, 5.0)  # pauses between tries that brought next to nothing
WORTHWHILE = 1 << 20  # bytes that make a try count as a success and not as a failure
STEP = 1 << 18  # bytes between two Progress events
CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")


class Unavailable(DownloadError):
    """A source that gave not one byte: it is safe to turn to another one."""


def fetch(
    part: Part,
    url: str,
    *,
    size: int | None = None,
    known_hash: bool = False,
    headers: Mapping[str, str] | None = None,
) -> Iterator[Progress]:
    """Bring `part` to its full length. The first event says where it starts and how far it goes.

    An earlier part is only gone on with where the end result will be hashed (`known_hash`) or the
    server promises by its ETag that the file is the same one.
    """
    import httpx2

    host = urlsplit(url).netloc
    heard = False
    failures = 0
    with client() as http:
        while True:
            at = resumable(part, url, known_hash)
            done = at
            try:
                for event in stream(http, part, url, at, size, headers or {}):
                    heard, done = True, event.done
                    yield event
                return
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                why = str(error) or type(error).__name__
                if not heard:
                    raise Unavailable(
                        f"cannot reach {host}", why=why, fix="check the network, then try again"
                    ) from None
                failures = 0 if done - at >= WORTHWHILE else failures + 1
                if failures > len(RETRY_SECONDS):
                    raise DownloadError(
                        f"the connection to {host} was lost",
                        why=why,
                        fix="run the same command again: it goes on from there",
                    ) from None
            time.sleep(RETRY_SECONDS[max(failures, 1) - 1])


def stream(
    http: httpx2.Client,
    part: Part,
    url: str,
    at: int,
    size: int | None,
    headers: Mapping[str, str],
) -> Iterator[Progress]:
    """One request, from byte `at` where the server can do that, else from the start."""
    if size is not None and at == size:
        yield Progress(at, size)
        return
    asked = dict(headers)
    if at:
        asked["Range"] = f"bytes={at}-"
        if etag := part.note().get("etag"):
            asked["If-Range"] = etag
    with http.stream("GET", url, headers=asked) as response:
        if response.status_code == 416 and at:
            # The part is not the beginning of what is there now; ask for all of it.
            part.path.unlink(missing_ok=True)
            response.close()
            yield from stream(http, part, url, 0, size, headers)
            return
        check_status(response, url)
        start, total = extent(response, at)
        if size is not None and total is not None and total != size:
            raise Unavailable(
                f"{urlsplit(url).netloc} has another file than expected",
                why=f"it is {total} bytes, expected {size}",
                fix="try again later, or report it",
            )
        total = size if total is None else total
        if start == 0:
            part.save_note({"url": url, "etag": strong_etag(response)})
        if total is not None:
            check_space(part.final.parent, total - start)
        yield from receive(response, part, start, total)


def receive(
    response: httpx2.Response, part: Part, start: int, total: int | None
) -> Iterator[Progress]:
    done = shown = start
    yield Progress(done, total)
    with part.append(start) as file:
        for chunk in response.iter_raw():
            done += len(chunk)
            if total is not None and done > total:
                raise DownloadError(
                    f"{part.final.name} is longer than the server said",
                    why=f"more than {total} bytes came",
                    fix="pull it again",
                )
            write(file, chunk)
            if done - shown >= STEP:
                shown = done
                yield Progress(done, total)
    yield Progress(done, total)


def resumable(part: Part, url: str, known_hash: bool) -> int:
    """Bytes of an earlier try that can be kept."""
    note = part.note()
    if note.get("url") != url or not (known_hash or note.get("etag")):
        return 0
    return part.path.stat().st_size if part.path.exists() else 0


def extent(response: httpx2.Response, at: int) -> tuple[int, int | None]:
    """Where the body of a response starts in the file, and the length of the whole file."""
    if response.status_code == 206:
        match = CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if match is None or int(match[1]) != at:
            raise DownloadError(
                f"{response.url.host} answered with another part of the file",
                why=f"asked from byte {at}, got {response.headers.get('Content-Range')}",
                fix="pull it again",
            )
        return at, int(match[2])
    length = response.headers.get("Content-Length", "")
    return 0, int(length) if length.isdigit() else None


def strong_etag(response: httpx2.Response) -> str | None:
    etag = str(response.headers.get("ETag", ""))
    return etag if etag.startswith('"') else None


def check_status(response: httpx2.Response, url: str) -> None:
    status = response.status_code
    if status in (200, 206):
        return
    host = urlsplit(url).netloc
    if status in (401, 403):
        raise Unavailable(
            f"{host} refuses access to {urlsplit(url).path}",
            why=f"status {status}: it needs an account that has accepted the model's terms",
            fix="accept the terms on its page, then set HF_TOKEN",
        )
    if status in (404, 410):
        raise Unavailable(
            f"nothing at {url}", why=f"{host} says status {status}", fix="check the address"
        )
    raise Unavailable(
        f"{host} cannot answer now", why=f"it says status {status}", fix="try again later"
    )


def client() -> httpx2.Client:
    import httpx2

    return httpx2.Client(
        follow_redirects=True,
        max_redirects=5,
        timeout=httpx2.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
        headers={"Accept-Encoding": "identity", "User-Agent": "specdec"},
        event_hooks={"request": [refuse_plain_http]},
    )


def refuse_plain_http(request: httpx2.Request) -> None:
    """Also on every redirect: an https address must not lead to an open one."""
    if request.url.scheme != "https" and not is_loopback(request.url.host):
        raise UsageError(
            f"will not fetch a model over plain http from {request.url.host}",
            why="anybody on the way could change it",
            fix="use https://",
        )
