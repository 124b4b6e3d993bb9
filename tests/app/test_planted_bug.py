"""`specdec verify` with a wrong rule planted in it: exit 5, from the real command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from gguf_files import write_tiny

from specdec_cli.app import verify as verifying
from specdec_cli.cli.main import run_command
from specdec_cli.core.chance import Chance
from specdec_cli.core.rounds import Proposal, Verdict
from specdec_cli.core.verification import RULES, TargetRows


def believe(proposal: Proposal, target: TargetRows, chance: Chance, start: int) -> Verdict:
    """Every guess stands."""
    return Verdict(len(proposal), chance.choose(start + len(proposal), target(len(proposal))))


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    target = write_tiny(tmp_path / "target.gguf", seed=1)
    draft = write_tiny(tmp_path / "draft.gguf", seed=2)
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"prompt": "one"}')
    pair = ["-m", str(target), "-md", str(draft), "-t", "1", "-c", "256"]
    return ["verify", *pair, "--prompts", str(prompts), "-n", "24"]


def test_a_sound_build_passes(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(arguments) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("identical: ")


@pytest.mark.parametrize("planted", sorted(RULES))
def test_a_planted_bug_is_exit_5(
    planted: str,
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    wrong = replace(RULES[planted], verify=believe)
    monkeypatch.setitem(RULES, planted, wrong)
    if planted == "coupled":
        monkeypatch.setattr(verifying, "RULE", wrong)
    assert run_command([*arguments, "--json"]) == 5
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "different"
    assert found["rules"][planted]["total_variation"] > 1e-3
    sound = set(RULES) - {planted}
    assert all(found["rules"][name]["total_variation"] <= 1e-12 for name in sound)
