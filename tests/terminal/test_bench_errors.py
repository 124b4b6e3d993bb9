"""What `specdec bench` refuses, before it costs time; and what a full disk does to its files."""

from __future__ import annotations

import errno
import json
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from bench_documents import bench_document
from benching import Bench, bench_of
from command import PATIENCE, Ran, command, environment, fails, parse

from specdec_cli.app.bench.saved import SCHEMA
from specdec_cli.cli.bench_options import Format, ReportFlags
from specdec_cli.cli.bench_report import Report
from specdec_cli.cli.console import Terminal
from specdec_cli.cli.main import run_command
from specdec_cli.cli.options import CommonFlags
from specdec_cli.errors import EvaluationError

Specdec = Callable[..., Ran]
Model = Callable[[str], Path]
ABSENT = ["bench", "-m", "absent.gguf"]  # what is refused with it is refused before loading


@pytest.fixture
def bench(model: Model) -> Bench:
    return bench_of(model("story"), model("draft"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-k", "5-3"], ["--draft-tokens", "'5-3'", "names no length"]),
        (["-k", "2-8+0"], ["'2-8+0'"]),
        (["-k", ""], ["--draft-tokens cannot be ''"]),
        (["-k", "65"], ["'65'", "0 to 64"]),
        (["-k", "4,x"], ["'x'"]),
        (["-k", "9" * 5000], ["--draft-tokens"]),
        (["--drafter", "modle"], ["'modle'", "auto, model, self, suffix"]),
        (["--drafter", ","], ["--drafter"]),
        (["--accept", "coupled,greedy"], ["'greedy'", "coupled, rejection, block"]),
        (["--category", "chatt"], ["'chatt'", "did you mean 'chat'?"]),
        (["--prompts", "absent.jsonl"], ["absent.jsonl"]),
        (["--quick", "--costs"], ["--quick and --costs"]),
        (["-p", "128,0"], ["-p cannot be", "whole numbers"]),
        (["-p", "1" * 20], ["-p cannot be"]),
        (["--depth", "64"], ["--depth is for --costs"]),
        (["--costs", "--depth", "many"], ["--depth cannot be 'many'"]),
        (["--synthetic-acceptance", "1.5"], ["--synthetic-acceptance", "1.5"]),
        (["--synthetic-acceptance", "nan"], ["nan"]),
        (["--fail-under", "nan"], ["nan"]),
        (["--tolerance", "5"], ["--tolerance cannot be '5'", "5%"]),
        (["-o", "xml"], ["xml", "md", "jsonl"]),
        (["-n", "0"], ["--max-tokens", "0"]),
        (["-r", "0"], ["--repetitions"]),
        (["--raw", "--system", "x"], ["--raw and --system"]),
        (["--save", "nowhere/a.json"], ["--save nowhere/a.json", "no directory"]),
        (["--html", "."], ["--html .", "directory"]),
        (["--save", "/dev/null"], ["/dev/null", "not a regular file"]),
        (["--save", "x" * 255], ["too long"]),
        (["--save", "a", "--html", "a"], ["--html a", "--save goes there"]),
        (["--plot", "a.gif"], ["a.gif", ".svg"]),
        (["--against", "absent.json"], ["absent.json"]),
        (["chat"], ["no such command 'chat'"]),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, list) else None,
)
def test_wrong_usage_is_found_before_a_model_is_looked_for(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: list[str]
) -> None:
    assert ran_here(capsys, *ABSENT, *arguments).failed(2, *words).out == ""
    assert not list(Path().iterdir())


def ran_here(capsys: pytest.CaptureFixture[str], *arguments: str) -> Ran:
    """In this process: forty starts of Python take longer than forty refusals."""
    code = run_command(list(arguments))
    out, err = capsys.readouterr()
    return Ran(out, err, code, out.encode())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"prompt": "a"}\n\n{"prompt": }\n', ["line 3", "not JSON"]),
        ('{"prompt": "a"}\n["b"]\n', ["line 2", "no prompt"]),
        ('{"prompt": "a", "category": 3}\n', ["line 1", "not a text"]),
        ("\n \n", ["no prompts"]),
        ("", ["no prompts"]),
    ],
)
def test_a_bad_list_of_prompts_names_the_line(
    capsys: pytest.CaptureFixture[str], text: str, words: list[str]
) -> None:
    Path("prompts.jsonl").write_text(text)
    ran = ran_here(capsys, *ABSENT, "--prompts", "prompts.jsonl")
    ran.failed(2, "prompts.jsonl", *words)


def test_errors_are_documents_with_json() -> None:
    fails(2, "usage", *ABSENT, "-k", "5-3", words=("'5-3'",))
    fails(3, "model_file", *ABSENT, words=("absent.gguf",))


def test_what_is_wrong_with_the_models_has_its_own_codes(
    bench: Bench, specdec: Specdec, model: Model
) -> None:
    fails(3, "model_file", "bench", "-m", model("story"), "-md", "absent.gguf")
    pair = ["bench", "-m", model("story"), "-md", model("padded"), "--costs"]
    fails(4, "incompatible_models", *pair)
    raw = ["bench", "-m", model("mamba"), "--drafter", "suffix", "--raw"]
    fails(2, "usage", *raw, words=("nothing to compare", "cannot take back"))
    ran = specdec("bench", "-m", model("story"), "--drafter", "none").failed(
        2, "nothing to compare"
    )
    assert ran.out == ""
    assert bench("-k", 0).failed(2, "nothing to compare", "-k 0").out == ""
    deep = ["bench", "-m", model("story"), "--drafter", "suffix", "--costs", "--depth", "490"]
    specdec(*deep).failed(2, "490", "no room", "512")


def test_a_draft_that_nobody_asks_is_not_loaded(specdec: Specdec, model: Model) -> None:
    pair = ["bench", "-m", model("story"), "-md", "absent.gguf", "--drafter", "suffix"]
    ran = specdec(*pair, "--costs", "-r", 1, "--depth", 8, "--json")
    assert ran.json["conditions"]["drafts"] == []
    assert "absent.gguf is not loaded" in ran.err


def test_a_baseline_that_shares_nothing_is_found_before_the_run(
    bench: Bench, specdec: Specdec, model: Model
) -> None:
    others = bench_document(["chat"], [("model", 6, "coupled")])
    Path("other.json").write_text(json.dumps(others))
    against = ["--against", "other.json"]
    assert bench("-k", 2, *against).failed(2, "other.json has nothing in common").out == ""
    for work in (["--costs"], ["--synthetic-acceptance", 0.5]):
        ran = specdec("bench", "-m", model("story"), "-md", model("draft"), *work, *against)
        assert ran.failed(2, "nothing in common").out == ""


def test_only_saved_benchmarks_of_one_schema_are_compared(specdec: Specdec) -> None:
    Path("a.json").write_text(json.dumps(bench_document()))
    Path("b.json").write_text(json.dumps(bench_document() | {"schema": "specdec-bench/99"}))
    Path("c.json").write_text("{}")
    fails(2, "usage", "bench", "compare", "a.json", "b.json", words=("bench/99", SCHEMA))
    specdec("bench", "compare", "c.json", "a.json").failed(2, "c.json", "schema")
    specdec("bench", "compare", "a.json", "d.json").failed(2, "d.json")
    specdec("bench", "compare", "a.json").failed(2, "AFTER is missing", "compare --help")


def small_files() -> None:
    """In the child process: a disk that is full after 4 KiB of a file."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def test_a_file_that_cannot_be_finished_leaves_the_old_one_whole(bench: Bench) -> None:
    Path("a.json").write_text("old")
    before = set(Path().iterdir())
    ran = bench("-k", 2, "--save", "a.json", preexec_fn=small_files)
    ran.failed(2, "--save a.json was not written", "too large")
    assert "| code" in ran.out  # the hour is not lost
    assert Path("a.json").read_text() == "old"
    assert set(Path().iterdir()) == before
    ran = bench("-k", 2, "--save", "a.json", "--json", preexec_fn=small_files)
    document = parse(ran.out)
    assert (ran.code, document["error"]["code"], document["complete"]) == (2, 2, True)


def test_a_full_disk_is_called_that(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    Path("a.json").write_text("old")
    report = Report(Terminal(CommonFlags()), ReportFlags(save=Path("a.json"), fail_under=1e6))
    monkeypatch.setattr(Path, "write_bytes", full)
    assert report.write(bench_document()) == 2
    out, err = capsys.readouterr()
    assert "| chat" in out
    assert "the disk is full" in err
    assert "below --fail-under" in err  # both are said
    assert [path.name for path in Path().iterdir()] == ["a.json"]
    assert Path("a.json").read_text() == "old"


@pytest.mark.parametrize("form", ["md", "json"])
def test_a_full_disk_under_stdout_is_no_bug(model: Model, form: str) -> None:
    asked = ["bench", "-m", model("story"), "--drafter", "suffix", "--costs", "-r", 1, "-o", form]
    with Path("/dev/full").open("wb") as full:
        process = subprocess.run(
            command(*asked),
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(),
            timeout=PATIENCE,
        )
    ran = Ran("", process.stderr.decode(), process.returncode, b"")
    ran.failed(1, "cannot be written", "disk is full")


@pytest.mark.parametrize("form", ["md", "json"])
def test_a_failure_is_told_with_what_was_finished(
    capsys: pytest.CaptureFixture[str], form: str
) -> None:
    report = Report(Terminal(CommonFlags()), ReportFlags(output=Format(form)))
    failure = EvaluationError("llama.cpp failed", why="because", fix="none")
    assert report.write(bench_document() | {"complete": False}, failure) == 1
    out, err = capsys.readouterr()
    assert "error: llama.cpp failed" in err
    if form == "json":
        document = json.loads(out)
        assert (document["complete"], document["error"]["type"]) == (False, "evaluation")
    else:
        assert "this is what was finished" in out


def test_an_interrupted_benchmark_fails_no_check(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report(Terminal(CommonFlags()), ReportFlags(fail_under=1e6))
    assert report.write(bench_document() | {"complete": False}) == 0
    assert report.write(bench_document()) == 5
    assert capsys.readouterr().err.count("error: ") == 1
