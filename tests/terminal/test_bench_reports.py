"""The texts that are made of a benchmark, on documents that no machine measured."""

from __future__ import annotations

import csv as csv_format
import io
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from bench_documents import (
    KEPT,
    bench_document,
    costs_document,
    every_document,
    hostile_document,
    one_result,
    slower,
    synthetic,
)
from rich.cells import cell_len
from rich.console import Console

from specdec_cli.app.bench.comparison import compare
from specdec_cli.cli.bench_comparison import comparison_markdown
from specdec_cli.cli.bench_html import html
from specdec_cli.cli.bench_lines import csv, jsonl
from specdec_cli.cli.bench_markdown import costs_markdown, markdown
from specdec_cli.cli.bench_plot import picture
from specdec_cli.cli.bench_terminal import Bars, cost_bars, speedup_bars
from specdec_cli.cli.bench_words import notes, verdict

Document = dict[str, Any]


def tables(text: str) -> list[list[list[str]]]:
    """The cells of every table, as GitHub would cut them."""
    found: list[list[list[str]]] = []
    inside = False
    for line in text.splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        if not inside:
            found.append([])
        inside = True
        found[-1].append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return found


# Markdown


@every_document
def test_markdown_tables_have_as_many_cells_in_every_row(make: Callable[[], Document]) -> None:
    document = make()
    for text in (markdown(document), costs_markdown(document)):
        for rows in tables(text):
            assert len({len(row) for row in rows}) == 1, text
            assert all(re.fullmatch(r"-+:?", cell) for cell in rows[1])
        assert "None" not in text
        assert "nan" not in text.lower().replace("unanswered", "")
    results = [rows for rows in tables(markdown(document)) if rows]
    assert sum(len(rows) - 2 for rows in results) == len(document["results"])


def test_a_markdown_row_says_what_was_measured() -> None:
    document = one_result()
    (header, rule, row), *_ = tables(markdown(document))
    cells = dict(zip(header, row, strict=True))
    result = document["results"][0]
    assert cells["speed-up"] == f"{result['speedup']:.2f}x (1.77-2.02)"
    assert cells["plain tok/s"] == "9.7"
    assert cells["accepted"] == "73%"
    assert cells["length"] == "3.94"
    assert cells["same text"] == "yes"
    assert cells["of limit"] == "80%"
    sides = dict(zip(header, rule, strict=True))
    assert not sides["category"].endswith(":")
    assert sides["tok/s"].endswith(":")


def test_markdown_is_aligned_for_a_terminal_too() -> None:
    document = bench_document(["你好", "code"])
    lines = [line for line in markdown(document).splitlines() if line.startswith("|")]
    assert len({cell_len(line) for line in lines}) == 1


def test_names_are_no_markup_in_markdown() -> None:
    text = markdown(hostile_document())
    assert not re.search(r"(?<!\\)[<>\[\]`$~&]", text.replace("**", ""))
    assert "\x1b" not in text
    assert "\x00" not in text
    assert "\udcff" not in text


def test_the_first_difference_is_named() -> None:
    assert "no (token 41)" in markdown(bench_document(["chat"]))


def test_costs_say_from_which_acceptance_drafting_pays() -> None:
    first, second = tables(costs_markdown(costs_document()))
    assert first[0][-3:] == ["k", "draft pays above", "free guesses pay above"]
    by_rows = {row[0]: row for row in first[2:]}
    assert by_rows["1"][-3:] == ["-", "-", "-"]
    assert by_rows["2"][1:3] == ["109.0", "1.10x"]
    assert by_rows["2"][-1] == "10%"  # one free guess: 1 + a = v(2) / v(1)
    assert len(second) == len(first)


# Words


def test_the_verdict_names_the_best_and_by_how_much() -> None:
    document = bench_document()
    best = document["summary"]["candidates"][document["summary"]["best"]]
    words = verdict(document)
    assert words.startswith("On this machine, drafting with qwen2.5-coder-0.5b-q4_k_m at k=2 made")
    assert f"{best['speedup_geomean']:.2f} times as fast" in words
    assert "geometric mean of 8 kinds of work" in words


def test_the_verdict_says_when_plain_is_faster() -> None:
    assert "plain decoding was faster" in verdict(slower(bench_document(), 0.5))


def test_the_verdict_claims_nothing_within_noise() -> None:
    document = bench_document()
    for entry in document["summary"]["candidates"]:
        entry["speedup_ci"] = [0.9, 1.9]
    assert "no clear difference" in verdict(document)


def test_a_made_up_acceptance_is_marked_in_every_report() -> None:
    document = synthetic()
    bars = io.StringIO()
    Console(file=bars, width=80).print(speedup_bars(document))
    for text in (markdown(document), html(document), bars.getvalue()):
        assert "ynthetic" in text
    assert verdict(document).startswith("If 80% of the guesses were accepted")
    assert json.loads(jsonl(document))["synthetic_acceptance"] == 0.8
    assert picture(document, "svg") != picture(one_result(), "svg")


def test_notes_say_what_a_reader_must_know() -> None:
    document = bench_document() | {"complete": False}
    document["skipped"] = [{"prompt": 6, "category": "rag", "reason": "it does not fit"}]
    document["conditions"]["load_average"] = 3.0
    said = "\n".join(notes(document))
    for words in ("Interrupted", "made from qwen2.5", "load 3.0, 2 cores", "Prompt 7 (rag)"):
        assert words in said
    for text in (markdown(document), html(document)):
        assert "Interrupted" in text


# CSV and JSON lines


@every_document
def test_csv_gives_back_what_went_in(make: Callable[[], Document]) -> None:
    document = make()
    rows = list(csv_format.DictReader(io.StringIO(csv(document))))
    if not document["results"]:
        assert len(rows) == (40 if document["cost_depths"] else 20 if document["costs"] else 0)
        return
    assert len(rows) == len(document["results"])
    for row, result in zip(rows, document["results"], strict=True):
        assert None not in row  # a cell too many
        assert row["category"] == result["category"]
        assert row["workload"] == document["conditions"]["workload"]
        low, high = result["speedup_ci"] or ("", "")
        assert (row["speedup_low"], row["speedup_high"]) == (str(low), str(high))
        if result["speedup"] is not None:
            assert float(row["speedup"]) == result["speedup"]
            shares = list(map(float, row["acceptance_per_position"].split(";")))
            assert shares == result["acceptance_per_position"]


@every_document
def test_every_json_line_stands_alone(make: Callable[[], Document]) -> None:
    document = make()
    lines = [json.loads(line) for line in jsonl(document).splitlines()]
    if document["results"]:
        assert [{key: line[key] for key in document["results"][0]} for line in lines] == (
            document["results"]
        )
    for line in lines:
        assert line["target_sha256"] == document["conditions"]["target"]["sha256"]
        assert {"cpu", "threads", "max_tokens", "specdec", "temp"} <= line.keys()


# The terminal


def drawn(bars: list[Bars], width: int, encoding: str = "utf-8") -> list[str]:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, errors="strict")
    console = Console(file=file, width=width, color_system=None)
    for each in bars:
        console.print(each)
    file.flush()
    return raw.getvalue().decode(encoding).splitlines()


@every_document
@pytest.mark.parametrize("width", [40, 80, 200])
def test_bars_fit_the_terminal(make: Callable[[], Document], width: int) -> None:
    document = make()
    lines = drawn([speedup_bars(document), *cost_bars(document)], width)
    assert all(cell_len(line) <= width for line in lines), lines
    measured = [result for result in document["results"] if result["speedup"] is not None]
    assert sum(f"{r['speedup']:.2f}x" in line for r in measured for line in lines) >= len(measured)


def test_bars_need_nothing_outside_ascii() -> None:
    document = bench_document()
    lines = drawn([speedup_bars(document), *cost_bars(document)], 40, "ascii")
    assert any("=|" in line for line in lines)


@pytest.mark.parametrize(("speedup", "share"), [(0.5, 0.5), (1.0, 1.0), (2.0, 2.0), (4.0, 4.0)])
def test_a_bar_is_as_long_as_its_number_beside_the_mark(speedup: float, share: float) -> None:
    document = one_result()
    document["results"][0] |= {"speedup": speedup, "speedup_ci": None}
    bar = drawn([speedup_bars(document)], 80)[-1].removeprefix("code ").partition(" 0.")[0]
    mark = bar.index("│")
    length = max(bar.rindex("█"), mark) if speedup >= 1 else bar.rindex("█")
    assert length + 1 == pytest.approx(share * (mark + 1), abs=1.5 * share)


def test_names_are_no_markup_in_the_terminal() -> None:
    lines = drawn([speedup_bars(hostile_document())], 120)
    assert "[bold]e[/bold]" in lines
    assert any(line.startswith("  [red]| k=2 block") for line in lines)


# Comparisons


def test_a_comparison_shows_means_first_then_categories() -> None:
    found = compare(bench_document(), slower(bench_document(), 0.9))
    ((_, _, *rows),) = tables(comparison_markdown(found))
    assert len(rows) == 3 * (1 + len(KEPT))
    assert [row[0] for row in rows[:3]] == ["**all**"] * 3
    assert {row[4] for row in rows} == {"-10.0%"}


def test_a_comparison_of_hostile_names_is_no_markup() -> None:
    after = hostile_document()
    after["conditions"]["cpu"] = "<b>|"
    del after["results"][-1]
    text = comparison_markdown(compare(hostile_document(), after))
    assert not re.search(r"(?<!\\)[<>\[\]`$~&]", text)
    assert all(len(row) == 7 for rows in tables(text) for row in rows)
    assert "Only before" in text
