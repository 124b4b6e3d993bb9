"""What the commands of a chat do, on a terminal and from a pipe."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from chats import READY, ChatScreen, conversations, messages
from command import Ran, environment

Specdec = Callable[..., Ran]
Model = Callable[[str], Path]
Talk = Callable[..., ChatScreen]

TALE = "".join(f" w{i}" for i in range(12))


def pair(model: Model) -> list[object]:
    return ["-m", model("story"), "-md", model("draft"), "-k", 4, "-n", 12]


def test_a_pipe_is_a_message_a_line_and_its_end_leaves_with_0(
    specdec: Specdec, model: Model
) -> None:
    ran = specdec("chat", "-m", model("tale"), "-s", 7, input="hi\nagain\n")
    assert (ran.out, ran.code) == (f"{TALE}\n{TALE}\n", 0)
    assert ran.err.count("seed 7") == 2
    assert [m["content"] for m in messages(*conversations())] == ["hi", TALE, "again", TALE]


def test_a_pipe_can_hold_blocks_and_commands(specdec: Specdec, model: Model) -> None:
    script = '"""\none\n\ntwo\n"""\n/foo\n/stats\n//x y\n'
    ran = specdec("chat", "-m", model("tale"), input=script)
    assert ran.out == f"{TALE}\n{TALE}\n"
    assert "there is no command /foo; nothing was sent" in ran.err
    assert "1 answer · 13 tokens" in ran.err
    said = [m["content"] for m in messages(*conversations()) if m["role"] == "user"]
    assert said == ["one\n\ntwo", "/x y"]


WRONG = (
    ("/set temp 3x", ["--temp cannot be '3x'", "valid number"]),
    ("/set temp -1", ["--temp cannot be -1.0", "0 or more"]),
    ("/set k 65", ["--draft-tokens cannot be '65'", "64"]),
    ("/set k 40", ["-k cannot be 40 in this chat", "31 guesses a round"]),
    ("/set drafter foo", ["--drafter cannot be 'foo'", "suffix"]),
    ("/set ghost maybe", ["ghost cannot be 'maybe'", "on or off"]),
    ("/set seed -2", ["--seed cannot be -2"]),
    ("/set tempp 1", ["no setting 'tempp'", "the nearest is temp"]),
    ("/set ctx-size 99", ["no setting 'ctx-size'", "when a chat starts"]),
    ("/spec maybe", ["/spec cannot be 'maybe'"]),
    ("/export pdf", ["no form 'pdf'", "md or json"]),
    ("/load nothing-like-it", ["there is no conversation 'nothing-like-it'"]),
    ("/read nowhere.txt", ["nowhere.txt"]),
    ("/model nowhere.gguf", ["nowhere.gguf"]),
    ("/undo", ["/undo has nothing to work on"]),
    ("/retry", ["nothing to answer again"]),
    ("/continue", ["no answer to go on with"]),
    ("/copy", ["/copy has nothing to work on"]),
    ("/help foo", ["no command /foo"]),
    ("/stat", ["there is no command /stat; nothing was sent", "/stats", "//stat sends /stat"]),
    ("/clera", ["there is no command /clera", "/clear"]),
    ("/s", ["there is no command /s;", "/set"]),
    ("/zzz", ["there is no command /zzz", "/help lists them"]),
)


def test_what_is_wrong_is_said_in_three_lines_and_the_chat_goes_on(
    specdec: Specdec, model: Model
) -> None:
    script = "".join(f"{line}\n" for line, _ in WRONG)
    ran = specdec("chat", "-q", "-m", model("tale"), input=f"{script}hi\n")
    said = ran.err.splitlines()
    assert len(said) == 3 * len(WRONG)
    for i, (line, words) in enumerate(WRONG):
        error = said[3 * i : 3 * i + 3]
        assert [text[:7] for text in error][::2] == ["error: ", "  fix: "], line
        for word in words:
            assert word in "\n".join(error), line
    assert (ran.out, ran.code) == (f"{TALE}\n", 0)
    assert [m["content"] for m in messages(*conversations())] == ["hi", TALE]


def test_settings_are_parsed_as_the_command_line_parses_them(
    specdec: Specdec, model: Model
) -> None:
    script = (
        "/set\n/set temp 0.25\n/set k 3\n/set parameter top-k 7\n/set --seed=9\n/set system Be.\n"
    )
    script += (
        "/set stop w3\n/set n 5\nhi\n/set n default\n/set stop default\n/set stop\nhi\n/show\n"
    )
    ran = specdec("chat", *pair(model), input=script)
    first, second = [m["details"] for m in messages(*conversations()) if m["role"] == "assistant"]
    assert first["sampling"]["temp"] == 0.25
    assert first["sampling"]["top_k"] == 7
    assert (first["seed"], first["draft_tokens"], first["max_tokens"]) == (9, 3, 5)
    assert (first["stop"], second["stop"], second["max_tokens"]) == (["w3"], [], 12)
    assert messages(*conversations())[0] == {"role": "system", "content": "Be."}
    assert ran.out == " w0 w1 w2 \n" + "".join(f" w{i}" for i in range(12)) + "\n"
    assert "system text: Be." in ran.err


def test_speculation_can_be_switched_and_the_draft_changed(specdec: Specdec, model: Model) -> None:
    script = f"a\n/spec off\nb\n/spec on\nc\n/draft off\nd\n/draft {model('story')}\ne\n"
    ran = specdec("chat", *pair(model), input=script)
    drafted = [m["details"]["drafted"] for m in messages(*conversations()) if m["role"] != "user"]
    assert [bool(count) for count in drafted] == [True, False, True, False, True]
    assert "speculation: off (/spec off)" in ran.err
    assert ran.err.count("of the model's") <= 1  # said when the models were loaded first
    assert "nothing drafted (/spec off)" in ran.err
    assert len(set(ran.out.splitlines())) == 1


def test_another_model_takes_the_conversation_over(specdec: Specdec, model: Model) -> None:
    script = f"a\n/model nowhere.gguf\nb\n/model {model('tale')}\nc\n"
    ran = specdec("chat", "-m", model("lines"), "-n", 2, "--no-draft", input=script)
    assert ran.out == "line 0\nline 1\nline 0\nline 1\n w0 w1\n"
    assert len(messages(*conversations())) == 6


def test_undo_retry_edit_clear(talk: Talk, model: Model) -> None:
    chat = talk("-m", model("tale"))
    chat.ask("one")
    chat.ask("two")
    chat.enter("/undo")
    assert "taken back: two" in chat.text
    assert [m["content"] for m in messages(*conversations())] == ["one", TALE]
    chat.ask("/retry")
    seeds = [m["details"]["seed"] for m in messages(*conversations()) if "details" in m]
    assert seeds[0] != 1
    assert f"seed {seeds[0]}" in chat.text
    chat.enter("/edit")
    chat.ask(" and more")
    assert [m["content"] for m in messages(*conversations())] == ["one and more", TALE]
    chat.enter("/edit")
    chat.type("\x03")  # gives it up
    chat.wait_for(READY)
    assert "the question stays as it was" in chat.text
    chat.ask("two")  # and this is asked after it
    chat.enter("/edit")
    chat.enter("\x15/context")  # so does any command
    chat.ask("three")
    said = [m["content"] for m in messages(*conversations()) if m["role"] == "user"]
    assert said == ["one and more", "two", "three"]
    chat.enter("/clear")
    chat.ask("new")
    assert len(conversations()) == 2
    assert chat.leave() == 0


def test_a_conversation_is_found_again(talk: Talk, specdec: Specdec, model: Model) -> None:
    specdec("chat", "-m", model("tale"), input="first\n")
    specdec("chat", "-m", model("lines"), "-n", 1, input="second\n")
    first, second = conversations()
    listed = specdec("chat", "--list", "--json").json
    assert [entry["title"] for entry in listed] == ["second", "first"]
    assert [entry["id"] for entry in listed] == [second.stem, first.stem]
    assert first.stem in specdec("chat", "--list").out
    chat = talk("--continue", "-n", 1)
    assert ">>> second" in chat.lines
    chat.ask("third")  # with its own model, which nobody named
    assert chat.leave() == 0
    assert [m["content"] for m in messages(second)][2:] == ["third", "line 0\n"]
    ran = specdec("chat", "--resume", first.stem, input="/retry\n/load\n/export md\n/export json\n")
    assert ran.out == f"{TALE}\n"
    assert second.stem in ran.err
    assert "first" in Path(f"{first.stem}.md").read_text()
    assert json.loads(Path(f"{first.stem}.json").read_text())["messages"][0]["content"] == "first"


def test_a_copy_is_saved_under_a_name_and_not_over_another(specdec: Specdec, model: Model) -> None:
    script = "hi\n/save\n/save kept.jsonl\n/save kept.jsonl\n/save -f kept.jsonl\n"
    ran = specdec("chat", "-m", model("tale"), input=script)
    assert "saved after every turn" in ran.err
    assert ran.err.count("a copy is in kept.jsonl") == 2
    assert ran.err.count("error:") == 1
    assert messages(Path("kept.jsonl"))[0]["content"] == "hi"
    ran = specdec("chat", "--resume", "kept.jsonl", input="again\n")
    assert len(messages(conversations()[-1])) == 4
    assert len(conversations()) == 2  # a file is read as a copy


def test_no_save_leaves_nothing_on_disk(talk: Talk, model: Model) -> None:
    chat = talk("-m", model("tale"), "--no-save", "--prompt-cache")
    chat.ask("a secret")
    chat.enter("/show")
    assert "(not saved)" in chat.text
    chat.enter("/clear")
    assert "the old one was not saved" in chat.text
    chat.ask("a secret")
    assert chat.leave() == 0
    home = Path(environment()["HOME"])
    assert not list(home.rglob("*.state"))
    assert not [path for path in home.rglob("*") if path.is_file() and "secret" in _text(path)]


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def test_a_file_goes_before_the_next_message_and_no_other(specdec: Specdec, model: Model) -> None:
    Path("notes.txt").write_text("one\ntwo\n")
    Path("picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    Path("huge.txt").write_text("word " * 400_000)
    script = "/read picture.png\n/read huge.txt\n/read notes.txt\nsum up\nand now?\n"
    ran = specdec("chat", "-m", model("tale"), input=script)
    assert ran.err.count("error:") == 2
    said = [m["content"] for m in messages(*conversations()) if m["role"] == "user"]
    assert said == ["notes.txt:\n\none\ntwo\n\n\nsum up", "and now?"]


def test_why_explains_refusals(specdec: Specdec, model: Model) -> None:
    ran = specdec("chat", *pair(model), "--greedy", input="hi\n/why\n")
    assert 'the draft guessed " w0"' in ran.err
    assert 'the target wanted " w8"' in ran.err
    assert "the target's likeliest:" in ran.err
    ran = specdec("chat", "-m", model("tale"), "--no-draft", input="hi\n/why\n")
    assert "refused no guess" in ran.err


def test_the_answer_is_copied_by_osc_52(talk: Talk, specdec: Specdec, model: Model) -> None:
    chat = talk("-m", model("tale"))
    chat.ask("hi")
    chat.enter("/copy")
    assert f"\x1b]52;c;{base64.b64encode(TALE.encode()).decode()}\x07" in chat.raw
    assert "OSC 52" in chat.text
    assert chat.leave() == 0
    ran = specdec("chat", "-m", model("tale"), input="hi\n/copy\n")
    assert "/copy needs a terminal" in ran.err


def test_a_full_context_says_what_helps(specdec: Specdec, model: Model) -> None:
    arguments = ["chat", "-m", model("tale"), "-c", 80]
    ran = specdec(*arguments, input="hi\n" * 6)
    assert "/clear" in ran.err
    assert "error:" in ran.err
    dropping = specdec(*arguments, "--on-full", "drop-oldest", input="hi\n" * 6)
    assert dropping.out == f"{TALE}\n" * 6
    assert "no longer shown to the model" in dropping.err
    assert "error:" not in dropping.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--json"], ["a chat is no JSON document"]),
        (["--continue", "--resume", "x"], ["--continue and --resume"]),
        (["--continue"], ["no conversation to go on with"]),
        (["--resume", "x"], ["there is no conversation 'x'"]),
        (["--temp", "-1"], ["--temp"]),
        (["--exact", "--accept", "block"], ["--exact"]),
    ],
    ids=str,
)
def test_a_chat_that_cannot_start_is_an_error_with_code_2(
    specdec: Specdec, arguments: list[str], words: list[str]
) -> None:
    specdec("chat", *arguments).failed(2, *words)


def test_a_model_without_a_template_is_a_clear_error(specdec: Specdec, model: Model) -> None:
    specdec("chat", "-m", model("base"), input="hi\n").failed(3, "no chat template")


def test_help_names_every_command(specdec: Specdec, model: Model) -> None:
    ran = specdec("chat", "-q", "-m", model("tale"), input="/help\n/help set\n/?\n")
    from specdec_cli.cli.chat_commands import COMMANDS

    assert len(COMMANDS) > 20
    for known in COMMANDS:
        assert f"/{known.name} " in ran.err
    assert ran.err.count("/set [NAME [VALUE]]") == 3
