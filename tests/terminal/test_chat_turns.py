"""Any sequence of turns and commands: the next answer is a fresh process's; the tail is read."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from chats import ChatScreen, Turn, conversations, messages
from command import environment
from gguf_files import write_with_vocabulary_of

Talk = Callable[..., ChatScreen]
Fresh = Callable[[list[dict[str, Any]]], dict[str, Any]]

TOKENS = 12
FRESH = """
import json, os, sys
from pathlib import Path
from specdec_cli.app.exact import find_exact, require_exact
from specdec_cli.app.generate import AnswerOptions, answer
from specdec_cli.app.session import LoadOptions, Session
from specdec_cli.core.options import SamplingOptions
from specdec_cli.engine.llama.chat_template import ChatTemplate

path, limit = Path(sys.argv[1]), int(sys.argv[2])
probe = find_exact(path, draft_tokens=4, threads=1, gpu_layers=-1)
options = LoadOptions(path, threads=1, numerics=require_exact(probe, best_effort=False))
greedy = AnswerOptions(SamplingOptions(temp=0), max_tokens=limit)
for line in sys.stdin:
    if os.fork() == 0:
        with Session(options) as session:
            prompt = ChatTemplate(session.model).tokens(json.loads(line))
            *_, last = answer(session, prompt, greedy)
        said = {"prompt": prompt, "tokens": last.tokens, "text": last.text}
        print(json.dumps(said), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.fixture
def fresh(smollm2: Path) -> Iterator[Fresh]:
    """What a process that has read nothing else answers to a history: a new one each time."""
    with subprocess.Popen(
        [sys.executable, "-c", FRESH, str(smollm2), str(TOKENS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:

        def answer(history: list[dict[str, Any]]) -> dict[str, Any]:
            assert process.stdin is not None
            assert process.stdout is not None
            said = [{"role": m["role"], "content": m["content"]} for m in history]
            process.stdin.write(json.dumps(said) + "\n")
            process.stdin.flush()
            return dict(json.loads(process.stdout.readline()))

        yield answer


class Checked:
    """Compares each turn with a fresh process, and what was read with what was new."""

    def __init__(self, fresh: Fresh) -> None:
        self._fresh = fresh
        self._read: dict[str, list[int]] = {}  # what each model has read, at least

    def check(self, turn: Turn) -> None:
        *history, answer = messages(conversations()[-1])
        fresh = self._fresh(history)
        assert turn.tokens == fresh["tokens"]
        assert answer["content"] == fresh["text"]
        prompt = fresh["prompt"]
        assert turn.prompt == len(prompt)
        for who, (tokens, cached) in {
            "target": [turn.prompt, turn.cached],
            **turn.readings,
        }.items():
            assert tokens == len(prompt)
            known = common(self._read.get(who, []), prompt)
            assert cached >= min(known, len(prompt) - 1)
            self._read[who] = [*prompt, *turn.tokens[:-1]] if who == "target" else prompt

    def restarted(self) -> None:
        self._read.clear()


def common(one: list[int], other: list[int]) -> int:
    """Length of the longest prefix that both begin with."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


@pytest.fixture(scope="module")
def clueless(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A draft that shares the vocabulary and knows nothing: every guess is refused."""
    path = tmp_path_factory.mktemp("clueless") / "draft.gguf"
    return write_with_vocabulary_of(path, smollm2)


def test_every_answer_is_that_of_a_fresh_process(
    talk: Talk, smollm2: Path, clueless: Path, request: pytest.FixtureRequest
) -> None:
    options = ["--exact", "--greedy", "-k", 4, "-n", TOKENS, "-c", 1024]
    chat = talk("-m", smollm2, "-md", smollm2, *options)
    checked = Checked(request.getfixturevalue("fresh"))  # now that the kernels are known
    for question in ("Name a fruit.", "A red one?", "Is it sweet?", "Where does it grow?"):
        checked.check(chat.ask(question))
    assert "drafts accepted" in chat.text
    chat.enter("/undo")
    checked.check(chat.ask("And a vegetable?"))
    checked.check(chat.ask("/retry"))
    chat.enter("/set k 2")
    checked.check(chat.ask("Which one is green?"))
    chat.enter("/spec off")
    checked.check(chat.ask("What colour is snow?"))
    chat.enter("/spec on")
    chat.enter("/set drafter suffix")
    checked.check(chat.ask("Say that again."))
    chat.enter("/clear")
    assert len(conversations()) == 1
    checked.check(chat.ask("Hello!"))
    assert len(conversations()) == 2
    chat.enter("/save kept.jsonl")
    assert chat.leave() == 0

    chat = talk("-m", smollm2, "-md", clueless, *options)
    checked.restarted()
    chat.enter("/load kept.jsonl")
    assert "Hello!" in chat.text
    checked.check(chat.ask("What can you do?"))
    assert "(0%)" in chat.text  # all its guesses are refused, and the answer is the same
    assert chat.leave() == 0
