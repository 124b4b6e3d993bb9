"""Models from a hub: the real client library against a hub on the loopback interface."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from specdec_cli.errors import DownloadError, UsageError
from specdec_cli.models.catalog import CatalogModel, HubSource
from specdec_cli.models.download import pull
from specdec_cli.models.events import Done, Notice, Progress, Started, Verified
from specdec_cli.models.references import Missing, resolve
from specdec_cli.models.store import installed

REPO = "user/repo"


@pytest.fixture
def model(hub, gguf) -> bytes:
    """A repository with one model, as the hub serves it."""
    data = gguf(elements=100_000)
    hub.files[f"{REPO}/Model-Q4_K_M.gguf"] = data
    return data


def blobs(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "models--user--repo" / "blobs").iterdir())


def test_it_lands_in_the_shared_cache_and_is_used_there(hub, model, cache, models):
    events = list(pull(f"hf:{REPO}"))
    digest = sha256(model).hexdigest()
    assert events[0] == Started(f"hf:{REPO}", len(model), "apache-2.0", "hub")
    assert Progress(len(model), len(model)) in events
    assert events[-2:] == [Verified(digest), Done(events[-1].path)]
    assert cache in events[-1].path.parents
    assert events[-1].path.read_bytes() == model
    assert blobs(cache) == [digest]  # no part, no note, no lock left
    assert not models.exists()


def test_the_token_goes_to_the_hub_and_not_to_where_it_redirects(hub, model):
    hub.files["cdn/blob.gguf"] = model
    hub.redirects[f"/{REPO}/resolve/{'c' * 40}/Model-Q4_K_M.gguf"] = (
        hub.address.replace("127.0.0.1", "localhost") + "/cdn/blob.gguf"
    )
    hub.status["/" + REPO + "/resolve/main"] = 503  # the library's own HEAD is not the point here
    with pytest.raises(DownloadError, match="could not be put in place"):
        run_without_retries(f"hf:{REPO}")
    [request] = hub.gets("resolve/c")
    assert request.headers["Authorization"] == "Bearer hf_not_a_token"
    [request] = hub.gets("cdn")
    assert "Authorization" not in request.headers


def run_without_retries(reference: str) -> None:
    import huggingface_hub.file_download as library

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "_DEFAULT_RETRY_ON_STATUS_CODES", ())
        list(pull(reference))


def test_a_cut_connection_is_taken_up_again(hub, model):
    hub.cuts = [150_000]
    events = list(pull(f"hf:{REPO}"))
    assert events[-1].path.read_bytes() == model
    first, second = hub.gets("resolve")
    assert "Range" not in first.headers
    assert second.headers["Range"] == "bytes=150000-"


def test_the_next_pull_goes_on_where_the_last_one_gave_up(hub, model, cache):
    hub.cuts = [100_000, 0, 0]
    with pytest.raises(DownloadError, match="was lost") as caught:
        list(pull(f"hf:{REPO}"))
    assert caught.value.code == 7
    assert "goes on" in caught.value.fix
    before = len(hub.gets("resolve"))
    events = list(pull(f"hf:{REPO}"))
    assert events[1] == Progress(100_000, len(model))
    assert hub.gets("resolve")[before].headers["Range"] == "bytes=100000-"
    assert events[-1].path.read_bytes() == model


def test_stopping_in_the_middle_keeps_the_part_and_frees_the_lock(hub, model, cache):
    events = pull(f"hf:{REPO}")
    while not (isinstance(event := next(events), Progress) and event.done):
        pass
    events.close()
    kept = event.done
    done = list(pull(f"hf:{REPO}"))
    assert done[1].done >= kept
    assert done[-1].path.read_bytes() == model


def test_a_part_with_wrong_bytes_is_found_out_and_set_aside(hub, model, cache):
    hub.claimed[f"{REPO}/Model-Q4_K_M.gguf"] = "0" * 64
    with pytest.raises(DownloadError, match="checksum") as caught:
        list(pull(f"hf:{REPO}"))
    assert sha256(model).hexdigest() in caught.value.why
    assert "0" * 64 + ".bad" in blobs(cache)
    assert "0" * 64 not in blobs(cache)
    assert resolve(f"hf:{REPO}") == Missing(f"hf:{REPO}", None)


def test_a_repository_that_does_not_exist(hub):
    hub.error_code = "RepoNotFound"
    with pytest.raises(DownloadError, match="no repository user/nothing"):
        list(pull("hf:user/nothing"))


@pytest.mark.parametrize("where", ["/api/models/", "/user/repo/resolve/"])
def test_a_gated_repository(hub, model, where):
    hub.status[where] = 401
    hub.error_code = "GatedRepo"
    with pytest.raises(DownloadError) as caught:
        list(pull(f"hf:{REPO}"))
    assert "terms" in caught.value.why
    assert "HF_TOKEN" in caught.value.fix


def test_a_cache_that_cannot_be_written_names_its_own_setting(hub, model, cache):
    cache.parent.mkdir()
    cache.touch()
    with pytest.raises(DownloadError, match="cannot write") as caught:
        list(pull(f"hf:{REPO}"))
    assert "HF_HOME" in caught.value.fix


def test_no_hub_in_reach_is_said_at_once():
    with pytest.raises(DownloadError, match=r"cannot reach 127\.0\.0\.1:9"):
        list(pull(f"hf:{REPO}"))


def test_a_login_page_in_place_of_the_hub(hub, monkeypatch):
    hub.files["page"] = b"<html>log in</html>"
    hub.redirects["/api/models/user/repo/revision/main"] = "/page"
    with pytest.raises(DownloadError, match="cannot reach"):
        list(pull(f"hf:{REPO}"))


def test_the_quantisation_is_chosen_by_name(hub, model, gguf):
    hub.files[f"{REPO}/Model-Q8_0.gguf"] = gguf(elements=64)
    hub.files[f"{REPO}/mmproj-Model-Q8_0.gguf"] = b"not a language model"
    [*_, done] = pull(f"hf:{REPO}:q8_0")
    assert done.path.name == "Model-Q8_0.gguf"


def test_an_absent_quantisation_names_those_that_exist(hub, model):
    hub.files[f"{REPO}/Model-Q8_0.gguf"] = model
    with pytest.raises(DownloadError, match="no file for Q2_K") as caught:
        list(pull(f"hf:{REPO}:Q2_K"))
    assert "Q4_K_M, Q8_0" in caught.value.why
    assert caught.value.fix == f"name one: hf:{REPO}:Q4_K_M"


def test_two_files_of_one_quantisation_must_be_told_apart(hub, model):
    hub.files[f"{REPO}/old/Model-Q4_K_M.gguf"] = model
    with pytest.raises(DownloadError, match="several files") as caught:
        list(pull(f"hf:{REPO}"))
    assert caught.value.fix == f"name one: hf:{REPO}/Model-Q4_K_M.gguf"
    [*_, done] = pull(f"hf:{REPO}/old/Model-Q4_K_M.gguf")
    assert done.path.parts[-2:] == ("old", "Model-Q4_K_M.gguf")


def test_all_parts_of_a_split_model_come_and_the_first_is_the_answer(hub, gguf):
    parts = [gguf(elements=n, keys={"split.count": 2}) for n in (5000, 3000)]
    for n, data in enumerate(parts, 1):
        hub.files[f"{REPO}/Big-Q4_K_M-0000{n}-of-00002.gguf"] = data
    events = list(pull(f"hf:{REPO}"))
    total = sum(map(len, parts))
    assert [event for event in events if isinstance(event, Started)] == [
        Started(f"hf:{REPO}", total, "apache-2.0", "hub")
    ]
    progress = [event.done for event in events if isinstance(event, Progress)]
    assert progress == sorted(progress)
    assert progress[-1] == total
    assert events[-1].path.name == "Big-Q4_K_M-00001-of-00002.gguf"
    assert [model.size for model in installed()] == [total]
    assert resolve(f"hf:{REPO}") == events[-1].path


def test_a_split_model_that_lacks_a_part(hub, gguf):
    hub.files[f"{REPO}/Big-Q4_K_M-00001-of-00002.gguf"] = gguf()
    with pytest.raises(DownloadError, match="lacks parts") as caught:
        list(pull(f"hf:{REPO}"))
    assert "00002-of-00002" in caught.value.why


def test_a_checksum_given_by_the_user_is_checked_before_a_byte_comes(hub, model):
    with pytest.raises(DownloadError, match="checksum"):
        list(pull(f"hf:{REPO}", sha256="1" * 64))
    assert not hub.gets("resolve")
    assert isinstance(list(pull(f"hf:{REPO}", sha256=sha256(model).hexdigest()))[-1], Done)


def test_a_pulled_model_is_found_without_a_network(hub, model, monkeypatch):
    [*_, done] = pull(f"hf:{REPO}")
    before = len(hub.requests)
    for reference in (f"hf:{REPO}", f"hf:{REPO}:q4_k_m", f"hf:{REPO}/Model-Q4_K_M.gguf"):
        assert resolve(reference) == done.path
        assert list(pull(reference, offline=True)) == [done]
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert list(pull(f"hf:{REPO}")) == [done]
    assert resolve(f"hf:{REPO}:Q8_0") == Missing(f"hf:{REPO}:Q8_0", None)
    with pytest.raises(DownloadError, match="not on this machine"):
        list(pull(f"hf:{REPO}:Q8_0"))
    assert len(hub.requests) == before


@pytest.mark.parametrize("reference", ["hf:", "hf:repo", "hf:a/b/c", "hf:a/../x.gguf", "hf:a/b:"])
def test_a_malformed_hub_reference(reference):
    with pytest.raises(UsageError):
        list(pull(reference))


def test_a_catalog_model_comes_from_its_pinned_revision(hub, model, cache, offer):
    offer(CatalogModel(**FIELDS, file="Model-Q4_K_M.gguf", size=len(model),
                       sha256=sha256(model).hexdigest(), hub=PINNED))  # fmt: skip
    events = list(pull("tiny:1b"))
    assert not [event for event in events if isinstance(event, Notice)]
    assert resolve("tiny:1b") == events[-1].path
    assert hub.requests[0].path.startswith(f"/api/models/{REPO}/revision/{'c' * 40}")
    again = list(pull("tiny:1b"))
    assert [type(event) for event in again] == [Notice, Verified, Done]


def test_a_hub_that_has_other_bytes_than_the_catalog_says(hub, model, offer):
    offer(CatalogModel(**FIELDS, file="Model-Q4_K_M.gguf", size=len(model), sha256="2" * 64,
                       hub=PINNED))  # fmt: skip
    with pytest.raises(DownloadError, match="checksum"):
        list(pull("tiny:1b"))


PINNED = HubSource(REPO, "c" * 40, "Model-Q4_K_M.gguf")
FIELDS = {"name": "tiny:1b", "licence": "MIT", "licence_url": "", "draft": None, "wheels": None}
