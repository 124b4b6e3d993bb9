"""`specdec bench` as it runs: progress, Ctrl-C, configuration, and texts that differ."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benching import Bench, bench_of, write_prompts
from command import Ran, parse
from screen import Screen

from specdec_cli.app.bench.measure import Progress
from specdec_cli.app.bench.saved import read
from specdec_cli.cli import bench as bench_command
from specdec_cli.cli.console import Terminal
from specdec_cli.cli.main import run_command
from specdec_cli.cli.options import CommonFlags
from specdec_cli.core.chance import Chance
from specdec_cli.core.rounds import Proposal, Verdict
from specdec_cli.core.verification import RULES, TargetRows
from specdec_cli.errors import EvaluationError

Specdec = Callable[..., Ran]
Model = Callable[[str], Path]
Watch = Callable[..., Screen]
LONG = ["--prompts", "prompts.jsonl", "-n", 300, "-r", 1000, "-k", 2]


@pytest.fixture
def bench(model: Model) -> Bench:
    return bench_of(model("story"), model("draft"))


@pytest.fixture
def pair(model: Model) -> list[object]:
    return ["bench", "-m", model("story"), "-md", model("draft")]


def test_a_terminal_shows_how_far_it_is_and_then_the_table_and_bars(
    pair: list[object], watch: Watch
) -> None:
    write_prompts({"category": "[/red]", "prompt": "x"})  # no markup, whatever it looks like
    work = ["--prompts", "prompts.jsonl", "-n", 200, "-r", 2, "-k", 2]
    screen = watch(*pair, *work, columns=200)
    screen.wait_for("[/red] · ")
    screen.wait_for(" left")
    assert screen.end() == 0
    text = "\n".join(screen.lines)
    assert "warming up" not in text  # progress leaves nothing behind
    assert " left" not in text
    assert "| code " in text
    assert "█" in text


def test_a_pipe_gets_neither_progress_nor_control_codes(bench: Bench) -> None:
    ran = bench("-k", 2)
    assert ran.err == ""
    assert "\x1b" not in ran.out
    assert "█" not in ran.out
    assert ran.out.startswith("**story**")


def test_a_log_gets_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr(bench_command, "perf_counter", lambda: now)

    def events() -> Iterator[Progress | dict[str, Any]]:
        nonlocal now
        for done in range(10):
            now += 25.0
            yield Progress(done, 10, 100.0 - 10 * done if done else None, "chat")
        yield {"the": "document"}

    document = bench_command.watch(Terminal(CommonFlags()), events())
    assert document == ({"the": "document"}, None)
    assert capsys.readouterr().err.splitlines() == [
        "chat · 2/10 · about 80 s left",
        "chat · 5/10 · about 50 s left",
        "chat · 8/10 · about 20 s left",
    ]
    bench_command.watch(Terminal(CommonFlags(quiet=True)), events())
    assert capsys.readouterr().err == ""


def test_a_failure_comes_with_what_was_finished_before_it() -> None:
    failure = EvaluationError("no", why="because", fix="none")

    def events(*found: dict[str, Any]) -> Iterator[Progress | dict[str, Any]]:
        yield from found
        raise failure

    terminal = Terminal(CommonFlags())
    assert bench_command.watch(terminal, events({"a": 1})) == ({"a": 1}, failure)
    with pytest.raises(EvaluationError):
        bench_command.watch(terminal, events())


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)
def test_a_signal_keeps_and_prints_what_is_done(
    pair: list[object], watch: Watch, number: int, code: int
) -> None:
    write_prompts()
    keep = ["--save", "a.json", "--fail-under", 1000]
    screen = watch(*pair, *LONG, *keep, columns=200)
    screen.wait_for("code · ")
    screen.wait_for("chat · ")  # so every prompt was answered once
    screen.signal(number)
    assert screen.end() == code
    assert "| code " in "\n".join(screen.lines)
    assert "error" not in screen.text  # a check of half a benchmark says nothing
    document = read(Path("a.json"))
    assert document["complete"] is False
    assert 6 <= len(document["runs"]) < 6000
    assert all(run["finish_reason"] == "length" for run in document["runs"])
    pairs = sum(row["pairs"] for row in document["results"])
    drafted = sum(run["candidate"] is not None for run in document["runs"])
    assert drafted - 1 <= pairs <= drafted


def test_ctrl_c_on_the_keyboard_does_the_same(pair: list[object], watch: Watch) -> None:
    write_prompts()
    screen = watch(*pair, *LONG, columns=200)
    screen.wait_for(" left")
    screen.interrupt()
    assert screen.end() == 130
    assert "nterrupted" in screen.text


def test_configuration_reaches_a_benchmark(bench: Bench) -> None:
    def ks(ran: Ran) -> list[object]:
        return [entry["k"] for entry in ran.json["summary"]["candidates"]]

    Path("specdec.toml").write_text(
        'draft-tokens = 3\ntemp = 0.5\nseed = 7\n[profiles.calm]\ndraft-tokens = "1,2"\n'
    )
    ran = bench("--json")
    assert ks(ran) == [3]
    conditions = ran.json["conditions"]
    assert (conditions["sampling"]["temp"], conditions["seed"]) == (0.5, 7)
    assert ks(bench("--json", "--profile", "calm")) == [1, 2]
    assert ks(bench("--json", env={"SPECDEC_DRAFT_TOKENS": "auto,4"})) == ["auto", 4]
    assert ks(bench("--json", "-k", 5, env={"SPECDEC_DRAFT_TOKENS": "auto"})) == [5]
    bench(env={"SPECDEC_DRAFT_TOKENS": "many"}).failed(2, "'many'")


def test_global_options_stand_before_the_command_too(specdec: Specdec, pair: list[object]) -> None:
    ran = specdec("--json", "-q", *pair, "--costs", "-r", 1, "--depth", 8)
    assert ran.json["schema"] == "specdec-bench/1"


def believe(proposal: Proposal, target: TargetRows, chance: Chance, start: int) -> Verdict:
    """Every guess stands: a wrong rule."""
    return Verdict(len(proposal), chance.choose(start + len(proposal), target(len(proposal))))


def test_a_text_that_changed_is_shown_with_its_place_and_gap(
    model: Model, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(RULES, "coupled", replace(RULES["coupled"], verify=believe))
    work = ["--prompts", str(write_prompts()), "-n", "30", "-r", "1", "-k", "3", "-t", "1"]
    models = ["-m", str(model("random")), "-md", str(model("random-draft"))]
    assert run_command(["bench", *models, *work, "--json"]) == 0
    document = parse(capsys.readouterr().out)
    for row in document["results"]:
        assert row["identical"] is False
        found = row["first_difference"]
        plain, drafted = (
            next(
                run["tokens"]
                for run in document["runs"]
                if (run["prompt"], run["candidate"]) == (found["prompt"], candidate)
            )
            for candidate in (None, 0)
        )
        at = found["position"]
        assert plain[:at] == drafted[:at]
        assert [plain[at], drafted[at]] == found["tokens"]
        assert plain[at] != drafted[at]
        assert found["gap"] > 0
