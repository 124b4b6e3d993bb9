"""What a person can do to a conversation, and what is exported of it."""

from __future__ import annotations

import json

import pytest

from specdec_cli.app.chat.conversation import Conversation, Message
from specdec_cli.app.chat.export import to_json, to_markdown
from specdec_cli.app.chat.lines import from_lines, to_lines


def answered(conversation: Conversation, text: str, *, partial: bool = False) -> Conversation:
    return conversation.answered(Message("assistant", text, partial, {"seed": 1}))


def three_turns() -> Conversation:
    conversation = Conversation("m").with_system("Be brief.")
    for number in "123":
        conversation = answered(conversation.say(f"q{number}"), f"a{number}")
    return conversation


def texts(conversation: Conversation) -> list[str]:
    return [message["content"] for message in conversation.for_template()]


def test_undo_takes_back_the_last_exchange_and_nothing_else() -> None:
    conversation = three_turns().undo()
    assert texts(conversation) == ["Be brief.", "q1", "a1", "q2", "a2"]
    assert texts(conversation.undo().undo()) == ["Be brief."]
    assert conversation.undo().undo().undo() == conversation.undo().undo()
    assert texts(three_turns().say("q4").undo()) == texts(three_turns())


def test_an_unanswered_question_is_replaced_by_the_next() -> None:
    conversation = Conversation("m").say("q1").say("q2")
    assert texts(conversation) == ["q2"]
    assert (conversation.question, conversation.unanswered, conversation.answer) == (
        "q2",
        True,
        None,
    )


def test_a_new_answer_takes_the_place_of_the_old() -> None:
    conversation = answered(three_turns(), "again")
    assert texts(conversation)[-3:] == ["a2", "q3", "again"]
    assert conversation.answer == Message("assistant", "again", False, {"seed": 1})


def test_the_system_text_stays_first() -> None:
    conversation = three_turns()
    assert texts(conversation.with_system(" "))[0] == "q1"
    assert texts(conversation.with_system("New."))[:2] == ["New.", "q1"]
    assert texts(conversation.with_system(None).with_system("New."))[:2] == ["New.", "q1"]
    assert texts(conversation.cleared()) == ["Be brief."]
    assert conversation.cleared().id != conversation.id


def test_dropped_turns_are_kept_and_not_shown() -> None:
    conversation = three_turns().dropping(2)
    assert texts(conversation) == ["Be brief.", "q3", "a3"]
    assert conversation.turns == 3
    assert texts(conversation.undo()) == ["Be brief.", "q2", "a2"]  # never none at all
    assert texts(conversation.with_model("n")) == texts(three_turns())


def test_half_a_surrogate_pair_does_not_reach_the_file() -> None:
    conversation = Conversation("m").say("caf\udce9").with_system("\ud83d")
    assert texts(conversation) == ["?", "caf?"]
    to_lines(conversation).encode()


@pytest.mark.parametrize("text", ["", "a\u2028b\x85c\nd\r\n\te", "\0\x1b[31m", '{"role": "user"}'])
def test_lines_say_the_same_when_read_again(text: str) -> None:
    conversation = answered(three_turns().dropping(1).say(text), text, partial=True)
    assert from_lines(to_lines(conversation).encode()) == conversation


def test_a_hand_may_leave_blank_lines() -> None:
    data = to_lines(three_turns()).replace("\n", "\n\n").encode()
    assert from_lines(data) == three_turns_of(data)


def three_turns_of(data: bytes) -> Conversation:
    header = json.loads(data.split(b"\n")[0])
    whole = three_turns()
    return Conversation("m", header["id"], header["created"], whole.messages)


def test_markdown_shows_who_said_what() -> None:
    page = to_markdown(three_turns())
    assert page.startswith("# Chat with m\n")
    assert "## System\n\nBe brief.\n\n## You\n\nq1\n\n## Assistant\n\na1\n" in page


def test_an_answer_cut_in_a_code_block_does_not_swallow_the_page() -> None:
    page = to_markdown(answered(Conversation("m").say("q"), "```c\nint", partial=True).say("next"))
    assert "int\n```\n\n*(cut off)*\n\n## You\n\nnext\n" in page


def test_the_document_has_the_details() -> None:
    document = json.loads(to_json(three_turns()))
    assert [message["role"] for message in document["messages"]][:3] == [
        "system",
        "user",
        "assistant",
    ]
    assert document["messages"][2]["details"] == {"seed": 1}
