"""A profile is written into a configuration of which everything else stays as it was."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from specdec_cli.app.configuration import read_settings, user_file
from specdec_cli.app.profiles import check, table, with_table, write_profile
from specdec_cli.errors import UsageError

VALUES = {"threads": 2, "draft-model": '/a "b"\\c é.gguf', "exact": True, "draft-tokens": "auto"}


@pytest.fixture
def config() -> Path:
    file = user_file()
    file.parent.mkdir(parents=True)
    return file


@pytest.mark.parametrize(
    ("before", "kept"),
    [
        ("", []),
        ("temp = 1", ["temp = 1\n"]),
        ("# mine\ntemp = 1  # warm\n", ["# mine\ntemp = 1  # warm\n"]),
        (
            "[profiles.tuned]\nx = [\n 1,\n]\n\n# calm\n[profiles.calm]\ntemp = 0\n",
            ["\n\n# calm\n[profiles.calm]\ntemp = 0\n"],
        ),
        (
            "[profiles.calm]\ntop-k = 1\n[profiles.tuned]\nx = 1\n# end\n",
            ["top-k = 1\n", "# end\n"],
        ),
        ('[ profiles . "tuned" ] # old\nx = 1\n[[other]]\ny = 1\n', ["[[other]]\ny = 1\n"]),
        ("temp = 1\r\n[profiles.tuned]\r\nx = 1\r\n", ["temp = 1\r\n"]),
    ],
)
def test_everything_else_stays(config: Path, before: str, kept: list[str]) -> None:
    config.write_bytes(before.encode())
    write_profile("tuned", VALUES, comment="measured")
    text = config.read_bytes().decode()
    for part in kept:
        assert part in text
    old, new = tomllib.loads(before), tomllib.loads(text)
    assert new["profiles"].pop("tuned") == VALUES
    old.get("profiles", {}).pop("tuned", None)
    assert {**new, "profiles": new["profiles"]} == {"profiles": {}, **old}
    assert ("\r\n" in text) == ("\r\n" in before)
    assert "\r\n" not in before or "\n" not in text.replace("\r\n", "")


def test_writing_it_again_changes_nothing(config: Path) -> None:
    config.write_text("temp = 1\n")
    write_profile("tuned", VALUES)
    first = config.read_text()
    write_profile("tuned", VALUES)
    assert config.read_text() == first
    assert with_table(first, "other", table("other", {"threads": 1})).startswith(first)


def test_the_profile_can_be_read_where_there_was_no_file() -> None:
    file = write_profile("tuned", VALUES)
    settings = read_settings("tuned", VALUES)
    assert {key: setting.value for key, setting in settings.items()} == VALUES
    assert [path.name for path in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize(
    "text",
    [
        "profiles.tuned.threads = 1\n",
        "[profiles]\ntuned = {threads = 1}\n",
        '[profiles.tuned]\nx = [\n[1],\n]\ny = """\n[z]\n"""\n',
        "[profiles.tuned.deeper]\nx = 1\n",
        "profiles = 3\n",
        "[[profiles]]\nx = 1\n",
    ],
)
def test_what_cannot_be_changed_safely_is_left_alone(config: Path, text: str) -> None:
    config.write_text(text)
    for attempt in (lambda: check("tuned"), lambda: write_profile("tuned", VALUES)):
        with pytest.raises(UsageError, match="cannot write the profile tuned"):
            attempt()
    assert config.read_text() == text


@pytest.mark.parametrize("data", [b"temp = \n", b'model = "\xff"\n'])
def test_a_file_that_is_not_toml_is_found_before_anything_is_measured(
    config: Path, data: bytes
) -> None:
    config.write_bytes(data)
    with pytest.raises(UsageError, match="cannot read the configuration"):
        check("tuned")
    assert config.read_bytes() == data


@pytest.mark.parametrize("name", ["", "two words", "a.b", "é", "x" * 65, "a\nb"])
def test_a_name_needs_no_quotes(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be called"):
        check(name)


def test_a_link_stays_a_link_and_permissions_stay(config: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("temp = 1\n")
    real.chmod(0o600)
    config.symlink_to(real)
    write_profile("tuned", VALUES)
    assert config.is_symlink()
    assert "[profiles.tuned]" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in config.parent.iterdir()] == [config.name]


def test_where_it_cannot_be_written_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Path.home() / ".config"
    home.write_text("a file where a directory should be")
    with pytest.raises(UsageError, match="cannot"):
        write_profile("tuned", VALUES)
    assert home.read_text() == "a file where a directory should be"
