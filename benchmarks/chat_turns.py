"""How long the fifth turn of a long chat waits for its first token: warm, cold, after a restart.

    python benchmarks/chat_turns.py smollm2:135m --tokens 3000
    python benchmarks/chat_turns.py qwen2.5-coder:0.5b --draft smollm2:135m --exact

Four turns about pasted source code are talked through; then the same fifth question is asked

* warm: in the running chat, which has read all that came before;
* cold: with empty caches, as a chat without any caching reads it;
* restarted: by a new session that loads the conversation, with `--prompt-cache`.

Times run from the call to the first text, the template, the fetch from disk and the saving of the
question included, loading the models not. The three take turns; each is the median of its runs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from time import perf_counter

from specdec_cli.app.chat.conversation import Conversation
from specdec_cli.app.chat.events import Reading
from specdec_cli.app.chat.prompt_cache import PromptCache
from specdec_cli.app.chat.store import Store
from specdec_cli.app.chat.talk import Settings, Talk
from specdec_cli.app.draft_models import DraftFile
from specdec_cli.app.exact import find_exact, require_exact
from specdec_cli.app.generate import Answer, Token
from specdec_cli.app.session import LoadOptions, Session, default_threads
from specdec_cli.core.options import SamplingOptions
from specdec_cli.models.references import resolve

QUESTIONS = ("What does this code do?", "And this?", "Name a flaw in this:", "Explain this:")
FIFTH = "Which of the four pieces of code would you rewrite first, and why?"
SOON = 8  # tokens, by when a draft has read the conversation too


@dataclass
class Waits:
    """Seconds from the call, one entry a run."""

    first: list[float] = field(default_factory=list)
    soon: list[float] = field(default_factory=list)
    cached: dict[str, tuple[int, int]] = field(default_factory=dict)
    tokens: tuple[int, ...] = ()


def fifth_turn(talk: Talk, waits: Waits) -> None:
    """Ask, note the times, and take the turn back."""
    before, count = talk.conversation, 0
    started = perf_counter()
    for event in talk.ask(FIFTH):
        if isinstance(event, Token):
            count += 1
            if count == 1:
                waits.first.append(perf_counter() - started)
            if count == SOON:
                waits.soon.append(perf_counter() - started)
        elif isinstance(event, Reading):
            waits.cached[event.model] = (event.cached, event.tokens)
        elif isinstance(event, Answer):
            waits.tokens = event.tokens
    talk.replace(before)


def converse(talk: Talk, tokens: int) -> None:
    """Four turns that leave the conversation about so long."""
    source = "".join(path.read_text("utf-8") for path in sorted(package().glob("core/*.py")))
    vocabulary = talk.session.model.vocabulary
    per_token = len(source[:20_000]) / len(vocabulary.tokenize(source[:20_000], special=False))
    answers = 4 * (talk.settings.max_tokens or 0)
    share = int((tokens - answers - 150) * per_token / 4)
    for number, question in enumerate(QUESTIONS):
        part = source[number * share : (number + 1) * share]
        for _ in talk.ask(f"{question}\n\n```python\n{part}\n```"):
            pass


def package() -> Path:
    return Path(__file__).parent.parent / "specdec_cli"


def measure(options: LoadOptions, settings: Settings, tokens: int, runs: int) -> dict[str, Waits]:
    results = {name: Waits() for name in ("warm", "cold", "restarted")}
    with tempfile.TemporaryDirectory() as folder:
        store, cache = Store(Path(folder, "conversations")), PromptCache(Path(folder, "prompts"))
        with Session(options) as session:
            chat = Talk(session, Conversation("bench"), settings, store=store, prompt_cache=cache)
            converse(chat, tokens)
            print(f"conversation of {chat.context_use().used} tokens", file=sys.stderr)
            chat.close()
            print(f"prompt cache of {cache.size / 2**20:.0f} MiB", file=sys.stderr)
            id = chat.conversation.id
            read = [(context, context.memo) for context in session.contexts]
            for _ in range(runs):
                for context, memo in read:  # as the fourth turn left it
                    context.logits(memo, last=1)
                fifth_turn(chat, results["warm"])
                session.forget()
                fifth_turn(Talk(session, chat.conversation, settings), results["cold"])
        for _ in range(runs):
            with Session(options) as session:
                for context in session.contexts:  # neither waits for first touches
                    context.logits([0, 0], last=1)
                chat = Talk(session, store.load(id), settings, store=store, prompt_cache=cache)
                fifth_turn(chat, results["restarted"])
    return results


def rows(results: dict[str, Waits], exact: bool) -> Iterator[str]:
    yield "| turn 5 | first token | against cold | first 8 tokens | read of the prompt |"
    yield "|---|---|---|---|---|"
    cold = median(results["cold"].first)
    for name, waits in results.items():
        first = median(waits.first)
        read = ", ".join(f"{who} {n - c} of {n}" for who, (c, n) in waits.cached.items())
        yield (
            f"| {name} | {first * 1e3:.0f} ms | {cold / first:.1f}x "
            f"| {median(waits.soon) * 1e3:.0f} ms | {read} |"
        )
    if exact:
        same = len({waits.tokens for waits in results.values()}) == 1
        yield f"\nexact: the three answers are {'the same ids' if same else 'DIFFERENT'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--draft")
    parser.add_argument("--tokens", type=int, default=3000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--flash-attention", choices=("auto", "on", "off"), default="auto")
    arguments = parser.parse_args()
    target = resolve(arguments.model)
    draft = resolve(arguments.draft) if arguments.draft else None
    if not isinstance(target, Path) or not isinstance(draft, Path | None):
        sys.exit("fetch the models first: specdec pull NAME")
    options = LoadOptions(
        target,
        (DraftFile(draft),) if draft else (),
        cross_vocab=True,
        context_size=4096,
        flash_attention=arguments.flash_attention,
    )
    if arguments.exact:
        probe = find_exact(
            target, draft_tokens=options.draft_tokens, threads=default_threads(), gpu_layers=-1
        )
        numerics = require_exact(probe, best_effort=False)
        options = replace(options, numerics=numerics, probe=probe)
    settings = Settings(SamplingOptions(temp=0), max_tokens=48)
    results = measure(options, settings, arguments.tokens, arguments.runs)
    print("\n".join(rows(results, arguments.exact)))


if __name__ == "__main__":
    main()
