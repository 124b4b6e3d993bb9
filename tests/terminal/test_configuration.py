"""Where the value of an option comes from."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Ran

Specdec = Callable[..., Ran]
LOCAL = Path("specdec.toml")


@pytest.fixture
def user_file(specdec: Specdec) -> Path:
    path = Path(specdec("config", "path", "--json").json[1]["path"])
    assert path.is_relative_to(os.environ["HOME"])
    path.parent.mkdir(parents=True)
    return path


def shown(specdec: Specdec, key: str, *arguments: str, **more: object) -> tuple[object, str]:
    setting = specdec("config", "show", "--json", *arguments, **more).json[key]
    return setting["value"], setting["source"]


def test_the_stronger_source_wins_and_is_named(specdec: Specdec, user_file: Path) -> None:
    assert shown(specdec, "draft-tokens")[1] == "built-in"
    user_file.write_text("draft-tokens = 5\n")
    assert shown(specdec, "draft-tokens") == ("5", str(user_file))
    LOCAL.write_text("draft-tokens = 6\n")
    assert shown(specdec, "draft-tokens") == ("6", "specdec.toml")
    variable = {"SPECDEC_DRAFT_TOKENS": "7"}
    value, source = shown(specdec, "draft-tokens", env=variable)
    assert value == "7"
    assert "SPECDEC_DRAFT_TOKENS" in source
    assert shown(specdec, "draft-tokens", "-k", "8", env=variable) == ("8", "command line")


def test_files_are_merged_key_by_key(specdec: Specdec, user_file: Path) -> None:
    user_file.write_text("temp = 0.5\ntop-k = 7\n")
    LOCAL.write_text("temp = 0.25\n")
    assert shown(specdec, "temp") == (0.25, "specdec.toml")
    assert shown(specdec, "top-k") == (7, str(user_file))


def test_a_profile_stands_above_the_files_and_below_the_environment(
    specdec: Specdec, user_file: Path
) -> None:
    user_file.write_text("[profiles.calm]\ntemp = 0.1\ntop-k = 3\n")
    LOCAL.write_text("temp = 0.9\n[profiles.calm]\ntemp = 0.2\n")
    value, source = shown(specdec, "temp", "--profile", "calm")
    assert value == 0.2
    assert "calm" in source
    assert shown(specdec, "top-k", "--profile", "calm")[0] == 3
    assert shown(specdec, "temp")[0] == 0.9
    variable = {"SPECDEC_TEMP": "0.3", "SPECDEC_PROFILE": "calm"}
    assert shown(specdec, "temp", env=variable)[0] == 0.3
    assert shown(specdec, "top-k", env=variable)[0] == 3


def test_a_profile_may_be_chosen_before_the_command(specdec: Specdec) -> None:
    LOCAL.write_text("[profiles.calm]\ntemp = 0.2\n")
    ran = specdec("--profile", "calm", "config", "show", "--json")
    assert ran.json["temp"]["value"] == 0.2


def test_a_run_obeys_its_configuration(specdec: Specdec, model: Callable[[str], Path]) -> None:
    LOCAL.write_text(
        f'model = "{model("story")}"\ndraft-model = "{model("draft")}"\n'
        "max-tokens = 7\nseed = 3\ndraft-tokens = 2\ngreedy = true\n"
    )
    params = specdec("run", "--json", "hello").json["params"]
    assert (params["max_tokens"], params["seed"], params["draft_tokens"]) == (7, 3, 2)
    assert params["temp"] == 0
    assert specdec("run", "--json", "-n", "2", "hello").json["params"]["max_tokens"] == 2


def test_lists_come_from_a_file_too(specdec: Specdec, model: Callable[[str], Path]) -> None:
    LOCAL.write_text('stop = ["w5", "w9"]\nlogit-bias = ["3=-inf"]\n')
    params = specdec("run", "-m", model("story"), "--json", "hello").json["params"]
    assert params["stop"] == ["w5", "w9"]
    assert params["logit_bias"] == {"3": "-inf"}


def test_an_unknown_key_is_an_error_with_a_suggestion(specdec: Specdec) -> None:
    LOCAL.write_text("draft-token = 3\n")
    specdec("config", "show").failed(2, "draft-token", "specdec.toml", "'draft-tokens'")


def test_an_unknown_key_in_a_profile_names_the_profile(specdec: Specdec) -> None:
    LOCAL.write_text("[profiles.calm]\ntempo = 3\n")
    specdec("config", "show", "--profile", "calm").failed(2, "tempo", "calm")


def test_an_unknown_profile_lists_those_there_are(specdec: Specdec) -> None:
    LOCAL.write_text("[profiles.calm]\ntemp = 0.2\n[profiles.wild]\ntemp = 2\n")
    specdec("run", "--profile", "clam", "hi").failed(2, "clam", "calm, wild")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("temp = -1\n", ["--temp", "-1"]),
        ('draft-tokens = "many"\n', ["many", "draft-tokens", "specdec.toml"]),
        ("draft-tokens = 65\n", ["65", "64", "specdec.toml"]),
        ('accept = "maybe"\n', ["maybe", "specdec.toml"]),
        ("batch-size = 0\n", ["batch-size", "specdec.toml"]),
        ("ctx-size = 0\n", ["ctx-size", "specdec.toml"]),
        ("temp = {value = 1}\n", ["temp"]),
        ("temp = [0.5]\n", ["temp"]),
        ("temp = \n", ["specdec.toml"]),
        ("profiles = 3\n", ["profiles"]),
    ],
)
def test_a_bad_value_is_wrong_usage(
    specdec: Specdec, model: Callable[[str], Path], text: str, words: list[str]
) -> None:
    LOCAL.write_text(text)
    specdec("run", "-m", model("tale"), "hi").failed(2, *words)


@pytest.mark.parametrize("name", ["SPECDEC_TEMP", "SPECDEC_DRAFT_TOKENS", "SPECDEC_CTX_SIZE"])
def test_a_bad_variable_is_named(specdec: Specdec, model: Callable[[str], Path], name: str) -> None:
    specdec("run", "-m", model("tale"), "hi", env={name: "many"}).failed(2, "many", name)


def test_a_bad_value_in_the_environment_names_the_variable(
    specdec: Specdec, model: Callable[[str], Path]
) -> None:
    ran = specdec("run", "-m", model("tale"), "hi", env={"SPECDEC_BATCH_SIZE": "many"})
    ran.failed(2, "SPECDEC_BATCH_SIZE")


def test_a_file_that_is_not_utf8_is_wrong_usage(specdec: Specdec) -> None:
    LOCAL.write_bytes(b'model = "\xff"\n')
    specdec("config", "show").failed(2, "specdec.toml")


def test_an_empty_variable_counts_as_unset(specdec: Specdec) -> None:
    assert shown(specdec, "draft-tokens", env={"SPECDEC_DRAFT_TOKENS": ""})[1] == "built-in"


def test_both_files_are_listed_and_missing_ones_marked(specdec: Specdec, user_file: Path) -> None:
    user_file.touch()
    first, second = specdec("config", "path").out.splitlines()
    assert first == f"{LOCAL.absolute()} (not there)"
    assert second == str(user_file)


def test_the_table_for_people_names_value_and_source(specdec: Specdec) -> None:
    LOCAL.write_text("top-p = 0.5\n")
    rows = [line.split() for line in specdec("config", "show").out.splitlines()]
    assert ["top-p", "0.5", "specdec.toml"] in rows
    assert ["temp", "0.8", "built-in"] in rows


def test_a_key_of_another_command_is_no_error(specdec: Specdec) -> None:
    LOCAL.write_text('sha256 = "x"\nshow = "none"\n')
    assert specdec("config", "show").code == 0
    assert specdec("list").code == 0
