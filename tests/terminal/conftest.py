"""Models whose answers the tests know, written once; and runs on a real terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from chats import ChatScreen
from gguf_files import EOS, byte_ids, write_tiny
from screen import Screen

WORDS = tuple(f" w{i}" for i in range(40))
CODE = ("Here:\n", "```", "python\n", "print", "(1)\n", "``", "`\n", "Done.", "\n```\n", "x", EOS)
MODELS: dict[str, dict[str, object]] = {
    "story": {"script": WORDS},  # " w0 w1 ... w39 w0 ...", never ends
    "draft": {"script": WORDS, "slips": (" w7", " w8", " w13", " w30")},
    "large": {"script": WORDS, "width": 128},
    "tale": {"script": (*WORDS[:12], EOS)},
    "lines": {"script": tuple(f"line {i}\n" for i in range(40))},
    "code": {"script": CODE},
    "characters": {"script": [*byte_ids("aé你🙂"), " b"]},
    "bytes": {"script": [*byte_ids(b"a\xff\xf0\x9fb\xc3")]},  # never a whole character
    "escapes": {"script": ["\x1b[31mred", "\x1b]0;title\x07", "\x9b2J", "\r", "\b", " end", EOS]},
    "markup": {"script": ["[bold]", "[/bold]", ":smile:", "[red]x", "\\[", EOS]},
    "wide": {"script": [*(f"{i}你好" for i in range(30))]},
    "random": {},
    "random-draft": {"seed": 1},
    "base": {"template": None, "markers": False},
    "marked": {"template": None, "script": WORDS},
    "mamba": {"script": WORDS, "architecture": "mamba"},
    "renamed": {"script": (*WORDS[:-1], " z")},
    "padded": {"script": WORDS, "extra_tokens": 200},
    "unsupported": {"architecture": "unheardof"},
}
Model = Callable[[str], Path]
Watch = Callable[..., Screen]
Talk = Callable[..., ChatScreen]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """The file of one of MODELS."""
    directory = tmp_path_factory.mktemp("models")

    def path(name: str) -> Path:
        file = directory / f"{name}.gguf"
        return file if file.exists() else write_tiny(file, **MODELS[name])  # type: ignore[arg-type]

    return path


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Start the command on a terminal of its own."""
    screens: list[Screen] = []

    def start(*arguments: object, **options: object) -> Screen:
        screens.append(Screen(*arguments, **options))  # type: ignore[arg-type]
        return screens[-1]

    yield start
    for screen in screens:
        screen.close()


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    """Start a chat on a terminal of its own, with a fixed seed."""
    screens: list[ChatScreen] = []

    def start(*arguments: object, **options: object) -> ChatScreen:
        log = tmp_path / f"turns-{len(screens)}.jsonl"
        screens.append(ChatScreen("-s", 1, *arguments, log=log, **options))
        return screens[-1]

    yield start
    for screen in screens:
        screen.close()
