"""`specdec bench` from the outside: what it can measure, and where the figures go."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from benching import Bench, bench_of, write_prompts
from command import Ran, parse

from specdec_cli.app.bench.saved import read
from specdec_cli.app.make_draft import make

Specdec = Callable[..., Ran]
Model = Callable[[str], Path]


@pytest.fixture
def bench(model: Model) -> Bench:
    return bench_of(model("story"), model("draft"))


def test_what_is_saved_is_what_was_printed(bench: Bench) -> None:
    before = set(Path().iterdir())
    ran = bench("-k", 2, "-o", "json", "--save", "a.json", "--html", "a.html", "--plot", "a.svg")
    assert read(Path("a.json")) == ran.json
    assert "<svg" in Path("a.html").read_text()
    assert "</svg>" in Path("a.svg").read_text()
    assert ran.err.splitlines() == ["wrote a.json", "wrote a.html", "wrote a.svg"]
    new = {path.name for path in set(Path().iterdir()) - before}
    assert new == {"a.json", "a.html", "a.svg"}


def test_an_older_file_is_replaced_and_a_link_followed(bench: Bench) -> None:
    old = Path("old.json")
    old.write_text("old")
    Path("link.json").symlink_to(old)
    assert bench("-k", 2, "--save", "link.json").code == 0
    assert Path("link.json").is_symlink()
    assert read(old)["complete"]


def test_two_saved_benchmarks_stand_side_by_side(bench: Bench, specdec: Specdec) -> None:
    bench("-k", 2, "--save", "a.json")
    bench("-k", "2,3", "--save", "b.json")
    for place in (["bench", "compare", "a.json", "b.json", "--json"],
                  ["bench", "--json", "compare", "a.json", "b.json"],
                  ["--json", "bench", "compare", "a.json", "b.json"]):  # fmt: skip
        found = specdec(*place).json
        assert [change["candidate"] for change in found["candidates"]] == [["model", 2, "coupled"]]
        assert len(found["only_after"]) == 2
    assert "model k=2" in specdec("bench", "compare", "a.json", "b.json").out


def test_a_regression_is_exit_5_after_the_figures(bench: Bench) -> None:
    bench("-k", 2, "--save", "a.json")
    check = ["-k", 2, "--against", "a.json"]
    multiply("a.json", 1e3)
    ran = bench(*check).failed(5, "slower than a.json", "less", "--tolerance is 5%")
    assert "| code" in ran.out
    ran = bench(*check, "--json")
    document = parse(ran.out)  # one document, the error in it
    assert ran.code == document["error"]["code"] == 5
    assert f"error: {document['error']['message']}\n" in ran.err
    assert len(document["results"]) == 2
    multiply("a.json", 1e-6)
    assert "error" not in bench(*check, "--json").json


def multiply(path: str, by: float) -> None:
    """The same benchmark with other speed-ups."""
    document = json.loads(Path(path).read_text())
    for row in document["results"]:
        row["speedup"] *= by
    Path(path).write_text(json.dumps(document))


def test_a_speed_up_can_be_demanded(bench: Bench) -> None:
    assert bench("-k", 2, "--fail-under", 0.001).code == 0
    ran = bench("-k", 2, "--fail-under", 1000).failed(5, "--fail-under 1000", "the best is")
    assert "| code" in ran.out
    assert parse(bench("-k", 2, "--fail-under", 1000, "--json").out)["error"]["code"] == 5


def test_other_formats_have_a_line_for_each_result(bench: Bench) -> None:
    lines = bench("-k", "1,2", "-o", "jsonl").lines
    table = list(csv.DictReader(io.StringIO(bench("-k", "1,2", "-o", "csv").out)))
    named = [(category, k) for category in ("chat", "code") for k in (1, 2)]
    assert [(line["category"], line["k"]) for line in lines] == named
    assert [(line["category"], int(line["k"])) for line in table] == named
    assert all(line["identical"] == "True" for line in table)


def test_costs_alone_are_tables_of_passes(bench: Bench, specdec: Specdec, model: Model) -> None:
    pair = ["bench", "-m", model("story"), "-md", model("draft"), "--costs", "-r", 1]
    document = specdec(*pair, "--depth", "16,64", "--json").json
    assert [costs["context"] for costs in document["cost_depths"]] == [16, 64]
    rows = [*map(str, range(1, 17)), "24", "32"]
    assert list(document["costs"]["target"]) == list(document["costs"]["draft"]) == rows
    assert document["results"] == document["runs"] == []
    assert "pays above" in specdec(*pair).out


@pytest.mark.parametrize("form", ["md", "csv", "jsonl", "json"])
def test_a_made_up_acceptance_is_marked(specdec: Specdec, model: Model, form: str) -> None:
    pair = ["bench", "-m", model("story"), "-md", model("draft"), "-c", 24]
    ran = specdec(*pair, "--synthetic-acceptance", 0.75, "-k", "2,auto", "-o", form)
    assert ran.code == 0
    mark = {"md": "made-up acceptance of 75%", "csv": ",0.75,"}
    assert mark.get(form, '"synthetic_acceptance": 0.75') in ran.out


def test_a_file_of_another_precision_says_so_beside_its_numbers(
    bench: Bench, model: Model, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.gguf"
    make(model("story"), copy, "BF16")
    document = bench("-m", copy, "-k", 2, "--json").json
    target = document["conditions"]["target"]
    assert target["quantisation"] == "BF16"
    assert target["origin"] == "made from story.gguf (unknown): its values at BF16 cost"
    assert target["origin"] in bench("-m", copy, "-k", 2).out.replace("\\", "")


def test_prompts_beyond_the_context_are_left_out(bench: Bench) -> None:
    write_prompts({"category": "long", "prompt": "the " * 600})
    ran = bench("-k", 2, "--json")
    (skipped,) = ran.json["skipped"]
    assert (skipped["prompt"], skipped["category"]) == (3, "long")
    assert "the context has 512" in skipped["reason"]
    assert {row["category"] for row in ran.json["results"]} == {"chat", "code"}
    assert ran.err.startswith("note: prompt 4 (long) is left out: ")
    none = bench("-k", 2, "--category", "long").failed(8, "no prompt fits")
    assert none.out == ""


def test_prompts_of_an_exact_length(specdec: Specdec, model: Model) -> None:
    pair = ["bench", "-m", model("story"), "-md", model("draft"), "-n", 8, "-r", 1, "-k", 2]
    document = specdec(*pair, "-p", "8,33", "--json").json
    assert [row["category"] for row in document["results"]] == ["synthetic 8", "synthetic 33"]
    assert {run["usage"]["prompt_tokens"] for run in document["runs"]} == {8, 33}
