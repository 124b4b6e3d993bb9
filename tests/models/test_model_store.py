"""The catalog, what is installed, what a REF means, and which draft fits a target."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from specdec_cli.errors import ModelFileError
from specdec_cli.models.catalog import DEFAULT_TARGET, CatalogModel, catalog
from specdec_cli.models.pairing import partner
from specdec_cli.models.quants import matching, quant_of
from specdec_cli.models.references import Missing, resolve
from specdec_cli.models.store import find, installed, models_directory


def entry(name: str, data: bytes, draft: str | None = None) -> CatalogModel:
    return CatalogModel(
        name=name,
        file=name.replace(":", "-") + ".gguf",
        size=len(data),
        sha256=sha256(data).hexdigest(),
        licence="MIT",
        licence_url="",
        draft=draft,
        hub=None,
        wheels=None,
    )


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def in_cache(cache: Path, repo: str, file: str, data: bytes, commit: str = "a" * 40) -> Path:
    folder = cache / ("models--" + repo.replace("/", "--"))
    blob = put(folder / "blobs" / sha256(data).hexdigest(), data)
    path = folder / "snapshots" / commit / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(os.path.relpath(blob, path.parent))
    return path


def test_the_catalog_is_whole():
    models = catalog()
    assert len(models) == 4
    assert DEFAULT_TARGET in models
    for name, model in models.items():
        assert re.fullmatch("[0-9a-f]{64}", model.sha256), name
        assert model.draft is None or model.draft in models
        assert model.hub is not None or model.wheels is not None
        assert model.licence
        assert model.licence_url.startswith("https://")
    assert models[models[DEFAULT_TARGET].draft].name == "qwen2.5-coder:0.5b"
    assert [len(model.wheels.packages) for model in models.values()] == [22, 6, 1, 4]


def test_looking_at_the_catalog_imports_nothing_heavy():
    code = (
        "import sys, specdec_cli.models.download, specdec_cli.models.pairing;"
        "print(*{'huggingface_hub', 'httpx2', 'filelock', 'numpy', 'rich'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_the_models_directory(monkeypatch, tmp_path):
    assert models_directory() == tmp_path / "models"
    monkeypatch.delenv("SPECDEC_MODELS")
    assert models_directory() == Path(__file__).parents[2] / "models"
    monkeypatch.setattr("specdec_cli.models.store.is_checkout", lambda _: False)
    assert models_directory().parts[-2:] == ("specdec", "models")


def test_nothing_is_installed_in_a_new_home():
    assert installed() == []
    assert find("anything") is None


def test_both_places_are_looked_in(models, cache, gguf, offer):
    data = gguf()
    offer(entry("tiny:1b", data), entry("big:2b", gguf(elements=2048), draft="tiny:1b"))
    put(models / "tiny-1b.gguf", data)
    put(models / "sub" / "own.gguf", gguf(elements=64))
    put(models / "tiny-1b.gguf.part", b"")
    in_cache(cache, "user/repo", "big-2b.gguf", gguf(elements=2048))
    in_cache(cache, "user/repo", "sub/other.gguf", gguf(elements=32))
    (cache / "models--user--repo" / "snapshots" / ("a" * 40) / "gone.gguf").symlink_to("nowhere")
    assert [(m.reference, m.source, m.draft_for) for m in installed()] == [
        ("own", "models", ()),
        ("tiny:1b", "models", ("big:2b",)),
        ("big:2b", "hub", ()),
        ("hf:user/repo/sub/other.gguf", "hub", ()),
    ]
    for model in installed():
        assert resolve(model.reference) == model.path
        assert find(model.path.name).path == model.path


def test_a_catalog_name_needs_the_right_size(models, gguf, offer):
    offer(entry("tiny:1b", gguf()))
    put(models / "tiny-1b.gguf", gguf()[:-1])
    assert installed()[0].catalog is None
    assert resolve("tiny:1b") == Missing("tiny:1b", len(gguf()))


def test_the_revision_of_main_wins(cache, gguf):
    in_cache(cache, "user/repo", "M-Q4_K_M.gguf", gguf(elements=8), commit="a" * 40)
    new = in_cache(cache, "user/repo", "M-Q4_K_M.gguf", gguf(elements=16), commit="b" * 40)
    put(cache / "models--user--repo" / "refs" / "main", b"b" * 40)
    assert resolve("hf:user/repo") == new
    assert resolve("hf:user/repo/M-Q4_K_M.gguf") == new


def test_a_path_is_itself(tmp_path, monkeypatch, gguf):
    path = put(tmp_path / "x.gguf", gguf())
    assert resolve(str(path)) == path
    monkeypatch.chdir(tmp_path)
    assert resolve("x.gguf") == Path("x.gguf")
    assert resolve("./x.gguf") == Path("x.gguf")


@pytest.mark.parametrize(
    ("reference", "nearest"),
    [
        ("qwen2.5-coder:1.5", "qwen2.5-coder:1.5b"),
        ("smolm2:135m", "smollm2:135m"),
        ("qwen", "qwen2.5-coder:1.5b, qwen2.5-coder:0.5b"),
    ],
)
def test_an_unknown_name_says_the_nearest(reference, nearest):
    with pytest.raises(ModelFileError, match="unknown model") as caught:
        resolve(reference)
    assert nearest in caught.value.why
    assert caught.value.code == 3


def test_a_mistyped_path_says_the_nearest_file(tmp_path, gguf):
    path = put(tmp_path / "model.gguf", gguf())
    with pytest.raises(ModelFileError, match="no model file at") as caught:
        resolve(str(tmp_path / "modle.gguf"))
    assert str(path) in caught.value.why


@pytest.mark.parametrize("reference", ["", "\0", "x" * 10_000, "~nobody-at-all/x.gguf", "[", "hf"])
def test_odd_names_are_unknown_and_no_crash(reference):
    with pytest.raises(ModelFileError):
        resolve(reference)


@pytest.mark.parametrize(
    ("file", "quant"),
    [
        ("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", "Q4_K_M"),
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "Q4_1"),
        ("dir/Big-UD-Q4_K_XL-00001-of-00002.gguf", "UD-Q4_K_XL"),
        ("model-f16.gguf", "F16"),
        ("model.BF16.gguf", "BF16"),
        ("gpt-mxfp4.gguf", "MXFP4"),
        ("model-IQ4_XS.gguf", "IQ4_XS"),
        ("model.gguf", None),
    ],
)
def test_quantisation_from_a_file_name(file, quant):
    assert quant_of(file) == quant


def test_matching_a_quantisation():
    files = ["m-Q4_K_M.gguf", "m-UD-Q4_K_M.gguf", "m-Q4_K_S.gguf", "mmproj-Q8_0.gguf", "x.md"]
    assert matching(files, None) == ["m-Q4_K_M.gguf"]
    assert matching(files, "ud-q4_k_m") == ["m-UD-Q4_K_M.gguf"]
    assert matching(files, "Q4") == []
    assert matching(files, "Q8_0") == []
    assert matching(["m-Q8_0.gguf"], None) == ["m-Q8_0.gguf"]
    assert matching(["m-special.gguf", "m-Q8_0.gguf"], "special") == ["m-special.gguf"]


class TestPairing:
    def test_the_catalog_knows_the_partner(self, models, gguf, offer):
        target, draft = gguf(elements=4096), gguf(elements=64)
        offer(entry("big:2b", target, draft="tiny:1b"), entry("tiny:1b", draft))
        path = put(models / "big-2b.gguf", target)
        assert partner(path, "big:2b") == Missing("tiny:1b", len(draft))
        assert partner(path, str(path)) == Missing("tiny:1b", len(draft))
        here = put(models / "tiny-1b.gguf", draft)
        assert partner(path, "big:2b") == here

    def test_else_the_smallest_with_the_same_vocabulary(self, models, cache, gguf):
        target = put(models / "target.gguf", gguf(elements=8192))
        put(models / "too-large.gguf", gguf(elements=5000))
        put(models / "larger.gguf", gguf(elements=1024))
        put(models / "other-words.gguf", gguf(elements=8, vocabulary=("a", "b", "c", "d")))
        put(models / "damaged.gguf", gguf(elements=16)[:-1])
        put(models / "embeds.gguf", gguf(elements=32, keys={"llama.pooling_type": 1}))
        best = in_cache(cache, "user/repo", "draft.gguf", gguf(elements=512))
        assert partner(target, str(target)) == best

    def test_or_none(self, models, gguf):
        target = put(models / "target.gguf", gguf(elements=8192))
        assert partner(target, "target") is None

    def test_a_target_that_cannot_be_read_is_an_error(self, models):
        with pytest.raises(ModelFileError):
            partner(models / "gone.gguf", "gone")
