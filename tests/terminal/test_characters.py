"""Text that is not ASCII, or not text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command import Ran
from screen import Screen

Specdec = Callable[..., Ran]
Model = Callable[[str], Path]
CHARACTERS = "aé你🙂 b"


def test_a_character_of_several_tokens_appears_with_its_last_byte(
    specdec: Specdec, model: Model
) -> None:
    *tokens, done = specdec("run", "-m", model("characters"), "-n", 24, "--jsonl", "hello").lines
    assert done["text"] == CHARACTERS * 2 + "a\ufffd"  # 24 = 2 * 11 + 2: the end cuts an é
    texts = [event["text"] for event in tokens]
    assert texts[:11] == ["a", "", "é", "", "", "你", "", "", "", "🙂", " b"]
    assert "".join(texts) == done["text"]


@pytest.mark.parametrize("draft", [["--no-draft"], ["-k", "3"]], ids=str)
def test_stdout_is_utf8_whatever_the_tokens_are(
    specdec: Specdec, model: Model, draft: list[str]
) -> None:
    same = ["-md", model("characters")] if draft[0] == "-k" else []
    ran = specdec("run", "-m", model("characters"), *same, *draft, "-n", 33, "hello")
    assert ran.raw.decode("utf-8") == CHARACTERS * 3 + "\n"


def test_bytes_that_are_no_characters_become_replacement_characters(
    specdec: Specdec, model: Model
) -> None:
    ran = specdec("run", "-m", model("bytes"), "-n", 12, "--json", "hello")
    assert ran.json["text"] == "a\ufffd\ufffdb\ufffda\ufffd\ufffdb\ufffd"


def test_a_stop_text_may_be_a_character_of_several_tokens(specdec: Specdec, model: Model) -> None:
    ran = specdec("run", "-m", model("characters"), "--stop", "🙂", "hello")
    assert ran.out == "aé你\n"


@pytest.mark.parametrize(
    "locale",
    [{"LC_ALL": "C"}, {"LC_ALL": "", "LANG": "C"}, {"LC_ALL": "POSIX"}],
    ids=["LC_ALL=C", "LANG=C", "POSIX"],
)
def test_a_plain_locale_does_not_end_a_run(
    specdec: Specdec, model: Model, locale: dict[str, str]
) -> None:
    ran = specdec("run", "-m", model("characters"), "-n", 11, "你好 🙂", env=locale)
    assert (ran.out, ran.code) == (CHARACTERS + "\n", 0)


def test_an_encoding_that_lacks_the_characters_replaces_them(
    specdec: Specdec, model: Model
) -> None:
    encoding = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    ran = specdec("run", "-m", model("characters"), "-n", 11, "x", env=encoding)
    assert (ran.out, ran.code) == ("a??? b\n", 0)
    ran = specdec("run", "-m", model("characters"), "-n", 11, "--json", "x", env=encoding)
    assert ran.json["text"] == CHARACTERS  # escaped: JSON needs no character outside ASCII


def test_text_on_standard_input_must_be_utf8(specdec: Specdec, model: Model) -> None:
    specdec("run", "-m", model("tale"), input=b"ab\xff").failed(2, "UTF-8", "0xff", "offset 2")


def test_a_prompt_file_must_be_utf8_too(specdec: Specdec, model: Model) -> None:
    Path("latin.txt").write_bytes("é".encode("latin-1"))
    specdec("run", "-m", model("tale"), "-f", "latin.txt").failed(2, "latin.txt", "UTF-8")


def test_an_argument_that_is_not_utf8_is_wrong_usage_or_text(
    specdec: Specdec, model: Model
) -> None:
    ran = specdec("run", "-m", model("tale"), "ab\udcff")
    assert ran.code in (0, 2)
    assert ran.code or ran.out


def test_a_byte_order_mark_is_not_part_of_the_prompt(specdec: Specdec, model: Model) -> None:
    arguments = ["run", "-m", model("random"), "-n", "0", "--json"]
    with_mark = specdec(*arguments, input="\ufeffhi").json["usage"]
    assert with_mark == specdec(*arguments, input="hi").json["usage"]


def test_wide_characters_do_not_shift_the_colours(
    model: Model, watch: Callable[..., Screen]
) -> None:
    name = model("wide")
    screen = watch("run", "-m", name, "-md", name, "-n", 30, "--drafter", "model", "hi", columns=41)
    screen.end()
    assert "".join(f"{i}你好" for i in range(30)) in screen.text.replace(" ", "")
