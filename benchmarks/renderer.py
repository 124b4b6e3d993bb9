"""What drawing costs: a synthetic stream of tokens through the chat's renderer, on a terminal.

    python benchmarks/renderer.py [--tokens 10000] [--columns 80]

Rounds of four guesses, of which 0 to 4 hold, as text with ghosts, colours and the live line. The
share is of the time that a model of 30 tokens a second would take for as many tokens.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import random
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from time import perf_counter

from specdec_cli.app.chat.events import Event, Proposed, Started
from specdec_cli.app.generate import Answer, Token
from specdec_cli.cli.chat_reply import Replies
from specdec_cli.cli.console import Terminal
from specdec_cli.cli.options import CommonFlags
from specdec_cli.core.rounds import Guess, Proposal, Round, Seconds
from specdec_cli.core.statistics import Statistics
from specdec_cli.core.text import Piece

MODEL_SPEED = 30  # tokens a second
GUESSES = 4
WORDS = (*(f" word{i}" for i in range(40)), ",", ".", "\n", "\n\n", " 你好", " a", "    x = [1]\n")


def stream(count: int, replies: Replies | None, seed: int = 0) -> Iterator[Event]:
    """The events of one long answer; with `replies`, ghosts too."""
    chance = random.Random(seed)
    statistics = Statistics()
    yield Started(seed)
    while statistics.tokens < count:
        words = chance.choices(WORDS, k=GUESSES + 1)
        if replies is not None:
            replies.proposed(Proposed(tuple(words[:GUESSES]), "model"))
        accepted = chance.randrange(GUESSES + 1)
        guesses = tuple(Guess(i) for i in range(GUESSES))
        round = Round(
            tuple(range(accepted + 1)), Proposal(guesses, "model"), accepted, Seconds(0.1, 0.1, 0)
        )
        statistics.add(round)
        for i in range(accepted + 1):
            source = round.source(i)
            yield Token(i, source, (Piece(words[i], source),))
        yield statistics
    yield Answer("", (), (), "stop", None, 0, 0, statistics, 0.1, "")


def seconds(count: int, *, ghosts: bool) -> float:
    replies = Replies(Terminal(CommonFlags()), colours=True, ghosts=ghosts)
    started = perf_counter()
    replies.show(stream(count, replies if ghosts else None))
    return perf_counter() - started


def on_a_terminal(columns: int, count: int, *, ghosts: bool) -> float:
    """Seconds in a process of its own with both streams on a terminal, which this one reads."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    result, answer = os.pipe()
    child = f"import os, renderer as r; t = r.seconds({count}, ghosts={ghosts})"
    child += f"; os.write({answer}, str(t).encode())"
    command = [sys.executable, "-c", child]
    here = {**os.environ, "TERM": "xterm-256color"}
    folder = os.path.dirname(os.path.abspath(__file__))
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, pass_fds=[answer], cwd=folder, env=here
    ):
        os.close(theirs)
        os.close(answer)
        with contextlib.suppress(OSError):  # the end, on Linux
            while os.read(ours, 1 << 16):
                pass
    os.close(ours)
    with os.fdopen(result) as written:
        return float(written.read())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=80)
    chosen = parser.parse_args()
    model = chosen.tokens / MODEL_SPEED
    for name in ("text, colours, live line", "and ghosts"):
        taken = on_a_terminal(chosen.columns, chosen.tokens, ghosts="ghosts" in name)
        print(
            f"{name}: {taken:.2f} s for {chosen.tokens:,} tokens, "
            f"{1e6 * taken / chosen.tokens:.0f} µs a token, "
            f"{taken / model:.2%} of {model:.0f} s at {MODEL_SPEED} tok/s"
        )


if __name__ == "__main__":
    main()
