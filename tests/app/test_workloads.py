"""What `specdec bench` measures: the built-in set, files of prompts, prompts of exact length."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from specdec_cli.app.bench.workloads import (
    CATEGORIES,
    LONGEST,
    Workload,
    from_file,
    full,
    only,
    quick,
    synthetic,
)
from specdec_cli.app.prompts import Prompt
from specdec_cli.errors import UsageError

LONG_QUICK = {"rag": (230, 350), "edit": (60, 200)}  # words; the others have to be short
QUICK_WORDS = 100  # about 150 tokens with the chat template


def words(text: str) -> list[int]:
    """A toy vocabulary: one id a word, the same word the same id."""
    return [sum(word.encode()) for word in text.split()]


def test_the_built_in_set_covers_every_category() -> None:
    count = Counter(entry.category for entry in full().prompts)
    assert full().categories == CATEGORIES == tuple(count)
    assert min(count.values()) >= 6


def test_no_prompt_of_the_built_in_set_is_there_twice() -> None:
    texts = [entry.prompt for entry in full().prompts]
    assert len(set(texts)) == len(texts)
    starts = {text[:60] for text in texts}
    assert len(starts) == len(texts)


def test_two_edits_are_long() -> None:
    edits = [entry.prompt for entry in full().prompts if entry.category == "edit"]
    assert sum(len(text.splitlines()) >= 150 for text in edits) >= 2


def test_retrieval_prompts_number_their_passages() -> None:
    for entry in only(full(), ["rag"]).prompts:
        passages = [line for line in entry.prompt.splitlines() if line.startswith("[")]
        assert 3 <= len(passages) <= 8
        assert [line[:3] for line in passages] == [f"[{n + 1}]" for n in range(len(passages))]


def test_the_quick_set_is_the_first_of_each_category_and_short() -> None:
    found = quick()
    assert found.categories == CATEGORIES
    assert len(found.prompts) == len(CATEGORIES)
    for entry in found.prompts:
        same_kind = [other for other in full().prompts if other.category == entry.category]
        assert entry == same_kind[0]
        fewest, most = LONG_QUICK.get(entry.category, (0, QUICK_WORDS))
        assert fewest < len(entry.prompt.split()) < most, entry.category


def test_categories_are_chosen_in_the_order_of_the_workload() -> None:
    found = only(full(), ["math", "chat", "math"])
    assert found.name == "full"
    assert found.categories == ("chat", "math")
    assert len(found.prompts) == sum(entry.category in ("chat", "math") for entry in full().prompts)
    assert only(full(), []) == full()


def test_an_unknown_category_names_those_there_are() -> None:
    workload = Workload("mine.jsonl", (Prompt("a", "letters"), Prompt("b", "poems")))
    with pytest.raises(UsageError) as caught:
        only(workload, ["poems", "poem"])
    assert "'poem'" in caught.value.message
    assert "mine.jsonl" in caught.value.message
    assert caught.value.why == "it has letters, poems"
    assert "'poems'" in caught.value.fix
    with pytest.raises(UsageError, match="no category 'code'"):
        only(workload, ["code"])


def test_a_file_is_read_as_people_and_programs_write_it(tmp_path: Path) -> None:
    separator = "\N{LINE SEPARATOR}"  # legal inside a JSON text, and a line break to Python
    lines = [
        {"prompt": f"one{separator}text", "category": "chat", "system": "brief"},
        {"prompt": "two", "system": None, "task_id": 7},  # exports have nulls and more columns
    ]
    text = "\r\n  \r\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    file = tmp_path / "mine.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + text.encode() + b"\r\n\r\n")
    first = Prompt(f"one{separator}text", "chat", "brief")
    assert from_file(file) == Workload("mine.jsonl", (first, Prompt("two")))


@pytest.mark.parametrize(
    ("line", "message", "fix"),
    [
        (b'{"prompt": ', "line 3 is not JSON", '{"prompt"'),
        (b"[" * 100_000, "line 3 is not JSON", '{"prompt"'),
        (b"9" * 5_000, "line 3 is not JSON", '{"prompt"'),
        (b'"only a text"', "line 3 has no prompt", '{"prompt"'),
        (b'[{"prompt": "in a list"}]', "line 3 has no prompt", '{"prompt"'),
        (b'{"category": "chat"}', "line 3 has no prompt", '{"prompt"'),
        (b'{"prompt": null}', "line 3 has no prompt", '{"prompt"'),
        (b'{"prompt": ["a"]}', "line 3 has a value that is not a text", "quotes"),
        (b'{"prompt": "x", "category": 3}', "line 3 has a value that is not a text", "quotes"),
        (b'{"prompt": "x", "system": {}}', "line 3 has a value that is not a text", "quotes"),
        (b'{"prompt": ""}', "line 3 has an empty prompt", "take the line out"),
        (b'{"prompt": " \\n\\t "}', "line 3 has an empty prompt", "take the line out"),
        (b'{"prompt": "x", "category": " "}', "line 3 has no usable category", "code"),
        (b'{"prompt": "x", "category": "a\\nb"}', "line 3 has no usable category", "code"),
        (b'{"prompt": "x", "category": "\\u001b[2J"}', "line 3 has no usable category", "code"),
        (b'{"Prompt": "x"}', "unknown key 'Prompt'", "'prompt'"),
        (b'{"prompt": "x", "catagory": "chat"}', "unknown key 'catagory'", "'category'"),
        (b'{"prompt": "x", "systm": "brief"}', "unknown key 'systm'", "'system'"),
        (b'{"prompt": "caf\xe9"}', "line 3 is not UTF-8", "utf-8"),
    ],
)
def test_a_bad_line_is_named_by_its_number(
    tmp_path: Path, line: bytes, message: str, fix: str
) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_bytes(b'{"prompt": "fine"}\r\n\r\n' + line + b'\r\n{"prompt": "fine"}\r\n')
    with pytest.raises(UsageError) as caught:
        from_file(file)
    assert message in caught.value.message
    assert "line 3" in caught.value.message
    assert "bad.jsonl" in caught.value.message
    assert fix in caught.value.fix


@pytest.mark.parametrize("content", [b"", b"\n \r\n\t\n", b"\xef\xbb\xbf"])
def test_a_file_without_prompts_is_an_error(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "empty.jsonl"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=r"no prompts in .*empty\.jsonl"):
        from_file(file)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"missing\.jsonl"):
        from_file(tmp_path / "missing.jsonl")
    with pytest.raises(UsageError, match="cannot read"):
        from_file(tmp_path)


def test_synthetic_prompts_have_exactly_their_length() -> None:
    longer = 3 * len(words(" ".join(entry.prompt for entry in full().prompts)))
    found = synthetic([1, 512, longer, 512], words)
    assert [entry.size for entry in found] == [1, 512, longer]
    assert [entry.category for entry in found][1] == "synthetic 512"
    assert found[2].tokens[:512] == found[1].tokens


def test_synthetic_prompts_are_the_built_in_prose_in_order() -> None:
    (found,) = synthetic([4000], words)
    prose = [
        id for entry in only(full(), ["summarisation", "rag"]).prompts for id in words(entry.prompt)
    ]
    assert len(prose) > 4000
    assert list(found.tokens) == prose[:4000]


def test_what_the_vocabulary_puts_first_is_there_once_and_counted() -> None:
    start = -1
    (found,) = synthetic([20_000], lambda text: [start, *words(text)])
    assert found.tokens[0] == start
    assert found.tokens.count(start) == 1
    assert found.size == 20_000


@pytest.mark.parametrize("size", [0, -5, LONGEST + 1])
def test_an_impossible_length_is_refused(size: int) -> None:
    with pytest.raises(UsageError, match=f"{size} tokens"):
        synthetic([512, size], words)
