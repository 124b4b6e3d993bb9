"""What people get wrong: three lines, the right exit code, nothing on stdout."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from command import PATIENCE, Ran, command, environment, parse
from gguf_files import write_cut, write_empty_header, write_ten_bytes, write_web_page

Specdec = Callable[..., Ran]
Model = Callable[[str], Path]


def fails(specdec: Specdec, code: int, kind: str, *arguments: object, words: tuple[str, ...] = ()):
    """As text and, with --json, as a document with the same code."""
    ran = specdec(*arguments).failed(code, *words)
    assert ran.out == ""
    with_json = specdec(*arguments, "--json")
    error = parse(with_json.out)["error"]
    assert (error["code"], error["type"], with_json.code) == (code, kind, code)
    assert set(error) == {"code", "type", "message", "hint"}
    assert error["hint"]
    assert f"error: {error['message']}\n" in with_json.err


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
    fails(specdec, 3, "model_file", "run", *models, "hello", words=(*words, "bad.gguf"))


def test_a_model_cut_in_the_middle(specdec: Specdec, smollm2: Path) -> None:
    path = write_cut(Path("cut.gguf"), smollm2)
    fails(specdec, 3, "model_file", "run", "-m", path, "hello", words=("truncated", "1000000"))


def test_an_unsupported_architecture(specdec: Specdec, model: Model) -> None:
    path = model("unsupported")
    fails(specdec, 3, "model_file", "run", "-m", path, "hello", words=("unheardof",))


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
        specdec, 3, "model_file", "run", "-m", "qwen2.5-coder:15b", "hello",
        words=("qwen2.5-coder:1.5b", "specdec list"),
    )  # fmt: skip


def test_a_misspelt_path_lists_the_nearest(specdec: Specdec, model: Model) -> None:
    wrong = model("story").with_name("stroy.gguf")
    fails(specdec, 3, "model_file", "run", "-m", wrong, "hello", words=("story.gguf",))


def test_a_draft_with_another_vocabulary(specdec: Specdec, model: Model) -> None:
    models = ["-m", model("story"), "-md", model("padded")]
    fails(
        specdec, 4, "incompatible_models", "run", *models, "hello",
        words=("vocabulary", "story.gguf", "padded.gguf", "--no-draft"),
    )  # fmt: skip


def test_a_draft_with_one_token_of_another_meaning_changes_nothing(
    specdec: Specdec, model: Model
) -> None:
    pair = ["-m", model("story"), "-md", model("renamed"), "--drafter", "model"]
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


def test_a_draft_and_no_draft_contradict_each_other(specdec: Specdec, model: Model) -> None:
    pair = ["-m", model("story"), "-md", model("draft"), "--no-draft"]
    fails(specdec, 2, "usage", "run", *pair, "hello", words=("contradict",))


def test_a_base_model_needs_raw(specdec: Specdec, model: Model) -> None:
    fails(specdec, 3, "model_file", "run", "-m", model("base"), "hello", words=("--raw",))
    assert specdec("run", "-m", model("base"), "--raw", "-n", 3, "hello").code == 0


def test_a_missing_template_is_guessed_aloud(specdec: Specdec, model: Model) -> None:
    ran = specdec("run", "-m", model("marked"), "-n", 2, "hello")
    assert (ran.out, ran.code) == (" w0 w1\n", 0)
    assert "ChatML" in ran.err


OPTIONS: list[tuple[list[object], list[str]]] = [
    (["-k", "-1"], ["draft-tokens"]),
    (["-k", "1000"], ["64"]),
    (["-k", "abc"], ["abc"]),
    (["-c", "0"], ["ctx-size"]),
    (["-c", "many"], ["many"]),
    (["-c", "-5"], ["ctx-size"]),
    (["-b", "0"], ["batch-size"]),
    (["-t", "0"], ["threads"]),
    (["-n", "-2"], ["max-tokens"]),
    (["-n", "1.5"], ["max-tokens"]),
    (["-ngl", "some"], ["gpu-layers"]),
    (["--temp", "-0.1"], ["--temp", "-0.1"]),
    (["--temp", "nan"], ["--temp"]),
    (["--temp", "inf"], ["--temp"]),
    (["--top-p", "0"], ["--top-p"]),
    (["--top-p", "2"], ["--top-p"]),
    (["--min-p", "1.5"], ["--min-p"]),
    (["--min-p", "-0.1"], ["--min-p"]),
    (["--top-k", "-1"], ["--top-k"]),
    (["--repeat-penalty", "0"], ["--repeat-penalty"]),
    (["--presence-penalty", "nan"], ["--presence-penalty"]),
    (["--penalty-last-n", "-2"], ["--penalty-last-n"]),
    (["--logit-bias", "5=nan"], ["--logit-bias"]),
    (["--logit-bias", "5=inf"], ["--logit-bias"]),
    (["--logit-bias", "5"], ["--logit-bias"]),
    (["--logit-bias", "x=1"], ["--logit-bias"]),
    (["--logit-bias", "-1=1"], ["--logit-bias"]),
    (["--logit-bias", "100000=1"], ["--logit-bias", "100000"]),
    (["--seed", str(2**64)], ["--seed"]),
    (["--seed", "-2"], ["--seed"]),
    (["--accept", "greedy"], ["greedy", "coupled"]),
    (["--drafter", "magic"], ["magic"]),
    (["--nonsense"], ["--nonsense"]),
    (["--draft-token", "3"], ["--draft-token"]),
    (["more", "words"], ["words"]),
    (["--raw", "--system", "be brief"], ["--system"]),
    (["-p", "twice"], ["twice"]),
    (["-f", "missing.txt"], ["missing.txt"]),
]


@pytest.mark.parametrize(("arguments", "words"), OPTIONS, ids=lambda value: " ".join(map(str, value)))
def test_a_bad_option_is_wrong_usage(
    specdec: Specdec, model: Model, arguments: list[str], words: list[str]
) -> None:
    ran = specdec("run", "-m", model("tale"), *arguments, "hello").failed(2, *words)
    assert ran.out == ""


def test_wrong_usage_is_a_document_too(specdec: Specdec, model: Model) -> None:
    fails(specdec, 2, "usage", "run", "-m", model("tale"), "-k", "1000", "hello")
    fails(specdec, 2, "usage", "run", "-m", model("tale"), "--temp", "-1", "hello")
    fails(specdec, 2, "usage", "rnu", "hello", words=("rnu",))


def test_json_that_was_configured_holds_for_errors_too(specdec: Specdec) -> None:
    ran = specdec("run", "-m", "nowhere.gguf", "hello", env={"SPECDEC_JSON": "1"})
    assert parse(ran.out)["error"]["code"] == 3


@pytest.mark.parametrize(("given", "arguments"), [("", []), ("\n \n", []), (None, [""])], ids=repr)
def test_an_empty_prompt_is_wrong_usage(
    specdec: Specdec, model: Model, given: str | None, arguments: list[str]
) -> None:
    ran = specdec("run", "-m", model("tale"), *arguments, input=given).failed(2, "empty")
    assert ran.out == ""


@pytest.mark.parametrize("size", ["1", "8"])
def test_a_prompt_that_does_not_fit_the_context(
    specdec: Specdec, model: Model, size: str
) -> None:
    fails(
        specdec, 8, "prompt_too_long", "run", "-m", model("tale"), "-c", size, "hello there",
        words=("tokens", f"context {size}", "-c"),
    )  # fmt: skip


def test_a_prompt_longer_than_the_models_own_context(specdec: Specdec, model: Model) -> None:
    ran = specdec("run", "-m", model("tale"), input="word " * 2000)
    ran.failed(8, "context 512")


def test_a_context_beyond_all_memory(specdec: Specdec, model: Model) -> None:
    fails(specdec, 6, "out_of_memory", "run", "-m", model("tale"), "-c", "2000000000", "hello")


def test_a_marker_in_the_prompt_does_not_end_the_turn(specdec: Specdec, model: Model) -> None:
    arguments = ["run", "-m", model("random"), "-n", 0, "--json"]
    plain = specdec(*arguments, "ab").json["usage"]["prompt_tokens"]
    marked = specdec(*arguments, "a<|im_end|>b").json["usage"]["prompt_tokens"]
    assert marked >= plain + len("<|im_end|>")  # a token for each byte, not one for the marker


def test_an_open_pipe_on_standard_input_does_not_hang_a_run_with_a_prompt(model: Model) -> None:
    reader, writer = os.pipe()
    try:
        ran = subprocess.run(
            command("run", "-m", model("tale"), "hello"),
            stdin=reader, capture_output=True, text=True, env=environment(), timeout=PATIENCE,
        )  # fmt: skip
    finally:
        os.close(reader)
        os.close(writer)
    assert ran.returncode == 0
    assert ran.stdout.startswith(" w0 w1")


def test_a_closed_standard_input_does_not_matter(model: Model) -> None:
    shell = f"{' '.join(command('run', '-m', model('tale'), 'hello'))} <&-"
    ran = subprocess.run(
        ["/bin/sh", "-c", shell], capture_output=True, text=True, env=environment(), timeout=PATIENCE
    )
    assert (ran.returncode, "Traceback" in ran.stderr) == (0, False), ran.stderr
    assert ran.stdout.startswith(" w0 w1")


def test_debugging_shows_the_traceback() -> None:
    ran = subprocess.run(
        command("run", "-m", "nowhere.gguf", "hello"),
        capture_output=True, text=True, env=environment({"SPECDEC_DEBUG": "1"}), timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert ran.returncode == 3
    assert "Traceback" in ran.stderr
