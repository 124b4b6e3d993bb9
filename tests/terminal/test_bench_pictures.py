"""The page and the picture of a benchmark, on documents that no machine measured."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from bench_documents import (
    KEPT,
    TARGET_MS,
    bench_document,
    costs_document,
    every_document,
    nothing,
    one_result,
)

from specdec_cli.cli import bench_plot
from specdec_cli.cli.bench_figures import acceptance_by_position, time_split
from specdec_cli.cli.bench_html import html
from specdec_cli.cli.bench_plot import check_plot, picture
from specdec_cli.cli.bench_words import notes, verdict
from specdec_cli.errors import UsageError

Document = dict[str, Any]
ONE = ("model", 4, "coupled")


VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """Checks that tags are closed in order, and keeps what there is."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & {*self.open}:
            self.text += data


@every_document
def test_the_page_is_well_formed_and_asks_for_nothing(make: Callable[[], Document]) -> None:
    text = html(make())
    page = Page(text)
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "img", "iframe", "object", "image", "use", "u", "s"}
    assert "http" not in text
    assert "url(" not in text
    assert "@import" not in text
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")]
        assert not {"src", "href", "xlink:href", "style"} & attributes.keys()
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    text.encode("utf-8")


def svgs(text: str) -> list[ET.Element]:
    """The outermost pictures; each must be XML by itself."""
    found, depth, start = [], 0, 0
    for match in re.finditer(r"<svg\b|</svg>", text):
        if match[0] == "</svg>":
            depth -= 1
            if depth == 0:
                found.append(ET.fromstring(text[start : match.end()]))
        else:
            start = start if depth else match.start()
            depth += 1
    return found


@every_document
def test_every_chart_is_xml_with_finite_places_and_words(make: Callable[[], Document]) -> None:
    places = ("x", "y", "x1", "x2", "y1", "y2", "width", "height", "dx")
    for drawn in svgs(html(make())):
        for element in drawn.iter():
            for name in places:
                if name in element.attrib:
                    assert re.fullmatch(r"-?\d+(\.\d+)?%?", element.attrib[name])
                    if element.attrib[name].endswith("%"):
                        assert 0 <= float(element.attrib[name][:-1]) <= 100.01
        if drawn.get("role") == "img":
            title, description = drawn[0], drawn[1]
            assert title.text
            assert description.text
            assert drawn.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"


@every_document
def test_the_page_holds_every_result_and_no_python(make: Callable[[], Document]) -> None:
    document = make()
    page = Page(html(document))
    rows = sum(tag == "td" and a.get("class") == "text" for tag, a in page.tags)
    assert rows == len(document["results"])
    assert not re.search(r"\b(None|nan|inf|True|Undefined|Markup)\b", page.text)
    if document["summary"]["best"] is not None:
        assert verdict(document).replace("\udcff", "?") in page.text
    for note in notes(document):
        assert note in page.text


def test_the_charts_of_a_full_page() -> None:
    text = html(bench_document())
    for name in ("speedups", "acceptance", "time", "costs"):
        assert f'aria-labelledby="{name}-title {name}-words"' in text
    assert text.count('class="point limit"') == 3 * len(KEPT)


def test_a_page_without_measurements_has_no_empty_chart() -> None:
    assert 'role="img"' not in html(nothing())
    assert html(costs_document()).count('role="img"') == 1


def test_colour_says_faster_only_beyond_noise() -> None:
    document = one_result()
    for bounds, style in (([1.1, 2.0], "faster"), ([0.9, 2.0], "unclear"), ([0.5, 0.9], "slower")):
        document["results"][0]["speedup_ci"] = bounds
        assert f'<rect class="bar {style}"' in html(document)


@every_document
@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_picture_can_be_drawn_of_everything(make: Callable[[], Document], kind: str) -> None:
    drawn = picture(make(), kind)
    if kind == "svg":
        assert ET.fromstring(drawn).tag.endswith("svg")
    else:
        assert drawn.startswith(b"\x89PNG")


def test_the_same_benchmark_gives_the_same_bytes() -> None:
    assert picture(one_result(), "svg") == picture(one_result(), "svg")


@pytest.mark.parametrize("name", ["bench.pdf", "bench", ".svg"])
def test_the_suffix_must_say_which_picture(name: str) -> None:
    check_plot(Path("bench.svg"))
    check_plot(Path("bench.PNG"))
    with pytest.raises(UsageError, match="--plot cannot make"):
        check_plot(Path(name))


def test_without_matplotlib_the_plot_is_refused_before_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bench_plot, "find_spec", lambda name: None)
    with pytest.raises(UsageError) as caught:
        check_plot(Path("bench.svg"))
    assert caught.value.fix == "pip install 'specdec-cli[plot]'"


def test_acceptance_is_the_mean_of_the_categories_that_have_the_position() -> None:
    document = bench_document(["chat", "code"], [ONE])
    short, whole = document["results"]
    short["acceptance_per_position"] = [0.5, 0.25]
    whole["acceptance_per_position"] = [1.0, 0.75, 0.5]
    assert acceptance_by_position(document) == {ONE: [0.75, 0.5, 0.5]}


def test_time_is_split_for_plain_and_every_candidate() -> None:
    document = bench_document()
    (name, parts), *others = time_split(document)
    assert name == "plain"
    assert parts["target"] + parts["other"] == pytest.approx(96 * TARGET_MS[1])
    assert [name for name, _ in others] == ["model k=2", "model k=4", "model k=7"]
    without_runs = time_split(document | {"runs": [{}, {"candidate": None}]})
    assert [name for name, _ in without_runs] == [name for name, _ in others]
