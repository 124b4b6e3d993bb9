"""Models from a plain address."""

from __future__ import annotations

import errno
import os
import shutil
from hashlib import sha256

import pytest

from specdec_cli.errors import DownloadError, UsageError
from specdec_cli.models.download import pull
from specdec_cli.models.events import Done, Notice, Progress, Started, Verified
from specdec_cli.models.references import Missing, resolve


@pytest.fixture
def model(hub, gguf) -> bytes:
    hub.files["m.gguf"] = gguf(elements=100_000)
    return hub.files["m.gguf"]


@pytest.fixture
def url(hub) -> str:
    return f"{hub.address}/m.gguf"


def names(directory) -> list[str]:
    """What a person sees in a directory: a lock that nobody holds may stay, hidden."""
    return sorted(path.name for path in directory.iterdir() if path.name[0] != ".")


def test_it_lands_in_the_models_directory(url, model, models):
    assert resolve(url) == Missing(url, None)
    events = list(pull(url))
    assert events[0] == Started("m.gguf", len(model), None, "url")
    assert events[-2:] == [Progress(len(model), len(model)), Done(models / "m.gguf")]
    assert (models / "m.gguf").read_bytes() == model
    assert names(models) == ["m.gguf"]
    assert resolve(url) == models / "m.gguf"


def test_it_is_not_fetched_twice(url, model, models, hub):
    list(pull(url))
    again = list(pull(url, sha256=sha256(model).hexdigest()))
    assert [type(event) for event in again] == [Notice, Verified, Done]
    assert len(hub.requests) == 1
    with pytest.raises(DownloadError, match="checksum"):
        list(pull(url, sha256="3" * 64))
    assert (models / "m.gguf").read_bytes() == model


@pytest.mark.parametrize("in_fragment", [True, False])
def test_a_checksum_is_checked(url, model, models, in_fragment):
    good, bad = sha256(model).hexdigest(), "3" * 64

    def events(digest: str):
        return pull(f"{url}#sha256={digest}") if in_fragment else pull(url, sha256=digest)

    with pytest.raises(DownloadError, match="checksum"):
        list(events(bad))
    assert names(models) == ["m.gguf.bad"]
    assert Verified(good) in list(events(good))


def test_two_checksums_that_differ(url):
    with pytest.raises(UsageError, match="two different"):
        list(pull(f"{url}#sha256={'3' * 64}", sha256="4" * 64))
    with pytest.raises(UsageError, match="not a sha256"):
        list(pull(url, sha256="abc"))


def test_a_cut_is_taken_up_by_range_when_the_etag_still_holds(url, model, hub):
    hub.cuts = [100_000]
    assert list(pull(url))[-1].path.read_bytes() == model
    second = hub.requests[1].headers
    assert second["Range"] == "bytes=100000-"
    assert second["If-Range"] == f'"{sha256(model).hexdigest()}"'


def test_a_file_that_changed_in_between_is_fetched_from_the_start(url, model, hub, gguf):
    hub.cuts = [100_000, 0, 0]
    with pytest.raises(DownloadError, match="was lost"):
        list(pull(url))
    hub.files["m.gguf"] = newer = gguf(elements=90_000)
    assert list(pull(url))[-1].path.read_bytes() == newer


def test_a_file_that_shrank_in_between_is_fetched_from_the_start(url, model, hub, gguf):
    hub.claimed["m.gguf"] = "same"  # a server whose ETag does not change with the file
    hub.cuts = [200_000, 0, 0]
    with pytest.raises(DownloadError, match="was lost"):
        list(pull(url))
    hub.files["m.gguf"] = newer = gguf(elements=100)
    assert list(pull(url))[-1].path.read_bytes() == newer


def test_without_an_etag_a_part_is_not_trusted(url, model, hub):
    hub.etags = False
    hub.cuts = [100_000]
    assert list(pull(url))[-1].path.read_bytes() == model
    assert "Range" not in hub.requests[1].headers


def test_with_a_checksum_no_etag_is_needed(url, model, hub):
    hub.etags = False
    hub.cuts = [100_000]
    assert list(pull(url, sha256=sha256(model).hexdigest()))[-1].path.read_bytes() == model
    assert hub.requests[1].headers["Range"] == "bytes=100000-"


def test_a_server_without_ranges_starts_again(url, model, hub):
    hub.ranges = False
    hub.cuts = [100_000]
    assert list(pull(url))[-1].path.read_bytes() == model


def test_a_web_page_is_not_kept_as_a_model(url, hub, models):
    hub.files["m.gguf"] = b"<!DOCTYPE html><title>Sign in</title>" + bytes(100)
    with pytest.raises(DownloadError, match="not a usable model") as caught:
        list(pull(url))
    assert "web page" in caught.value.why
    assert names(models) == ["m.gguf.bad"]


@pytest.mark.parametrize("status", [204, 401, 403, 404, 410, 416, 429, 500, 503])
def test_a_server_that_does_not_give_it(url, hub, status, models):
    hub.status["/"] = status
    with pytest.raises(DownloadError) as caught:
        list(pull(url))
    assert str(status) in caught.value.why
    assert not names(models)


@pytest.mark.parametrize(
    "reference",
    [
        "http://example.com/m.gguf",
        "https://example.com/m.bin",
        "https://example.com/",
        "https://example.com/..%2f.gguf",
        "https://example.com/a%5Cb.gguf",
    ],
)
def test_addresses_that_are_refused(reference):
    with pytest.raises(UsageError):
        list(pull(reference))


@pytest.mark.parametrize(
    "host", ["[", "exa mple", "", "127.0.0.1:99999", "\x01", "user@", "ü" * 70]
)
def test_addresses_that_make_no_sense(host):
    with pytest.raises((UsageError, DownloadError)):
        list(pull(f"https://{host}/m.gguf"))


def test_a_circle_of_redirects(url, hub):
    hub.redirects["/m.gguf"] = "/m.gguf"
    with pytest.raises(DownloadError, match="cannot reach"):
        list(pull(url))


def test_a_redirect_to_open_http_is_refused(url, hub):
    hub.redirects["/m.gguf"] = "http://example.com/m.gguf"
    with pytest.raises(UsageError, match="plain http"):
        list(pull(url))


def test_a_full_disk_keeps_the_part(url, model, hub, monkeypatch):
    written = []

    def write(file, data):
        if sum(written) > 100_000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(len(data))
        file.write(data)

    with monkeypatch.context() as patch:
        patch.setattr("specdec_cli.models.transfer.write", write)
        with pytest.raises(DownloadError, match="disk is full") as caught:
            list(pull(url))
    assert "goes on" in caught.value.fix
    events = list(pull(url))
    assert events[1].done == sum(written)
    assert events[-1].path.read_bytes() == model


def test_too_little_space_is_said_before_a_byte_is_written(url, model, models, monkeypatch):
    usage = shutil.disk_usage("/")._replace(free=len(model))  # 5 % short
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(DownloadError, match="not enough disk space"):
        list(pull(url))
    assert not (models / "m.gguf.part").exists()


def test_a_models_directory_that_cannot_be_made(url, hub, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("SPECDEC_MODELS", str(tmp_path / "file" / "models"))
    with pytest.raises(DownloadError, match="cannot write") as caught:
        list(pull(url))
    assert "SPECDEC_MODELS" in caught.value.fix
    assert not hub.requests


def test_a_second_pull_waits_for_the_first_and_finds_it_done(url, model, hub, models):
    first, second = pull(url), pull(url)
    next(first)
    assert "another pull" in next(second).text
    [*_, done] = first
    assert [*second] == [Notice("m.gguf is already here"), done]
    assert len(hub.requests) == 1


@pytest.mark.parametrize("stop", [KeyboardInterrupt, GeneratorExit])
def test_an_interrupted_pull_can_be_gone_on_with(url, model, hub, stop):
    events = pull(url)
    while not (isinstance(event := next(events), Progress) and event.done):
        pass
    with pytest.raises(stop):
        events.throw(stop)
    again = list(pull(url))
    assert again[1].done >= event.done
    assert again[-1].path.read_bytes() == model
