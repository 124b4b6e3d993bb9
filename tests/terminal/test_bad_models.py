"""Files that are no models, and models that do not go together."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Ran, fails
from gguf_files import write_cut, write_empty_header, write_ten_bytes, write_web_page

Specdec = Callable[..., Ran]
Model = Callable[[str], Path]


@pytest.mark.parametrize("role", ["target", "draft"])
@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda path: None, ("no model file",)),
        (lambda path: path.mkdir(), ("directory",)),
        (write_ten_bytes, ("not a GGUF file", "ten bytes!")),
        (write_web_page, ("not a GGUF file", "web page")),
        (lambda path: path.touch(), ("not a GGUF file", "empty")),
        (write_empty_header, ("llama.cpp",)),
    ],
    ids=["missing", "directory", "ten bytes", "web page", "empty", "empty header"],
)
def test_a_file_that_is_no_model(
    specdec: Specdec, model: Model, write: Callable[[Path], object], words: tuple[str, ...],
    role: str,
) -> None:  # fmt: skip
    path = Path("bad.gguf").absolute()
    write(path)
    models = ["-m", path] if role == "target" else ["-m", model("tale"), "-md", path]
    fails(3, "model_file", "run", *models, "hello", words=(*words, "bad.gguf"))


def test_a_model_cut_in_the_middle(specdec: Specdec, smollm2: Path) -> None:
    path = write_cut(Path("cut.gguf"), smollm2)
    fails(3, "model_file", "run", "-m", path, "hello", words=("truncated", "1000000"))


def test_an_unsupported_architecture(specdec: Specdec, model: Model) -> None:
    path = model("unsupported")
    fails(3, "model_file", "run", "-m", path, "hello", words=("unheardof",))


def test_an_unreadable_file(specdec: Specdec, model: Model) -> None:
    path = Path("secret.gguf")
    path.write_bytes(model("tale").read_bytes())
    path.chmod(0)
    if os.access(path, os.R_OK):  # root reads everything: a loop of links is unreadable to all
        path.unlink()
        path.symlink_to(path.absolute())
        specdec("run", "-m", path, "hello").failed(3)
    else:
        specdec("run", "-m", path, "hello").failed(3, "ermission")


def test_an_unknown_name_lists_the_nearest(specdec: Specdec) -> None:
    fails(
        3, "model_file", "run", "-m", "qwen2.5-coder:15b", "hello",
        words=("qwen2.5-coder:1.5b", "specdec list"),
    )  # fmt: skip


def test_a_misspelt_path_lists_the_nearest(specdec: Specdec, model: Model) -> None:
    wrong = model("story").with_name("stroy.gguf")
    fails(3, "model_file", "run", "-m", wrong, "hello", words=("story.gguf",))


def test_a_draft_with_another_vocabulary(specdec: Specdec, model: Model) -> None:
    models = ["-m", model("story"), "-md", model("padded")]
    fails(
        4, "incompatible_models", "run", *models, "hello",
        words=("vocabulary", "story.gguf", "padded.gguf", "--no-draft"),
    )  # fmt: skip


def test_a_draft_with_one_token_of_another_meaning_changes_nothing(
    specdec: Specdec, model: Model
) -> None:
    pair = ["-m", model("story"), "-md", model("renamed"), "--drafter", "model", "-k", 4]
    ran = specdec("run", *pair, "-n", 45, "--json", "hello")
    assert ran.json["text"].endswith(" w37 w38 w39 w0 w1 w2 w3 w4")
    assert ran.json["speculative_decoding"]["num_accepted_draft_tokens"] > 20


def test_a_draft_larger_than_its_target_runs_with_a_warning(specdec: Specdec, model: Model) -> None:
    ran = specdec("run", "-m", model("story"), "-md", model("large"), "-n", 3, "hello")
    assert (ran.out, ran.code) == (" w0 w1 w2\n", 0)
    assert "larger than the target" in ran.err


def test_a_draft_that_is_the_target_runs_with_a_warning(specdec: Specdec, model: Model) -> None:
    ran = specdec("run", "-m", model("story"), "-md", model("story"), "-n", 3, "hello")
    assert (ran.out, ran.code) == (" w0 w1 w2\n", 0)
    assert "same file" in ran.err


@pytest.mark.parametrize("off", [["--no-draft"], ["-k", "0"], ["--drafter", "suffix"]], ids=str)
def test_a_draft_that_is_not_wanted_is_left_aside_aloud(
    specdec: Specdec, model: Model, off: list[str]
) -> None:
    """The draft may stand in a configuration file, so this is no contradiction."""
    ran = specdec("run", "-m", model("story"), "-md", model("draft"), *off, "-n", 3, "hello")
    assert (ran.out, ran.code) == (" w0 w1 w2\n", 0)
    assert "is not loaded" in ran.err


def test_a_base_model_needs_raw(specdec: Specdec, model: Model) -> None:
    fails(3, "model_file", "run", "-m", model("base"), "hello", words=("--raw",))
    assert specdec("run", "-m", model("base"), "--raw", "-n", 3, "hello").code == 0


def test_a_missing_template_is_guessed_aloud(specdec: Specdec, model: Model) -> None:
    ran = specdec("run", "-m", model("marked"), "-n", 2, "hello")
    assert (ran.out, ran.code) == (" w0 w1\n", 0)
    assert "ChatML" in ran.err
