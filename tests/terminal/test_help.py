"""What a person sees who asks, or does not know what to ask."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from command import Ran

from specdec_cli import __version__

Specdec = Callable[..., Ran]
COMMANDS = (
    "run", "pull", "list", "config show", "config path", "tune", "draft make", "draft list",
    "draft rm", "memory show", "memory clear",
)  # fmt: skip


def test_no_arguments_show_the_help(specdec: Specdec) -> None:
    ran = specdec()
    assert (ran.code, ran.err) == (0, "")
    assert all(command.split()[0] in ran.out for command in COMMANDS)


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(specdec: Specdec, command: str, option: str) -> None:
    ran = specdec(*command.split(), option)
    assert (ran.code, ran.err) == (0, "")
    assert f"{command} [OPTIONS]" in ran.out


def test_help_names_every_option_of_the_contract(specdec: Specdec) -> None:
    text = specdec("run", "--help", env={"COLUMNS": "200"}).out
    for option in (
        "-m", "--model", "-md", "--draft-model", "--no-draft", "-k", "--draft-tokens", "--accept",
        "--temp", "--temperature", "--top-k", "--top-p", "--min-p", "--repeat-penalty", "--seed",
        "-s", "-n", "--max-tokens", "--stop", "--ignore-eos", "-c", "--ctx-size", "-b", "-t",
        "-ngl", "-ngld", "-fa", "-sys", "--raw", "-p", "-f", "--show", "--jsonl", "-x", "--json",
        "--exact", "--cross-vocab", "--drafter", "--greedy", "--logit-bias",
    ):  # fmt: skip
        assert option in text, option
    assert "--draft-max" not in text


@pytest.mark.parametrize("alias", ["--draft-max", "--num-draft-tokens", "--spec-draft-n-max"])
def test_rivals_names_of_the_draft_length_work(
    specdec: Specdec, model: Callable[[str], object], alias: str
) -> None:
    ran = specdec("run", "-m", model("tale"), alias, 3, "--json", "hello")
    assert ran.json["params"]["draft_tokens"] == 3


def test_the_version_is_the_packages(specdec: Specdec) -> None:
    ran = specdec("--version")
    assert ran.out.splitlines()[0] == f"specdec {__version__}"


def test_a_misspelt_command_has_a_suggestion(specdec: Specdec) -> None:
    specdec("rnu").failed(2, "rnu", "run")


def test_a_group_without_a_command_shows_its_help_and_no_empty_error(specdec: Specdec) -> None:
    ran = specdec("config")
    assert "show" in ran.out + ran.err
    assert "error:" not in ran.err
