"""Which drafts are loaded at all: by what passes cost here, and by what the memory holds."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from gguf_files import CONTEXT, HEADS, LAYERS, WIDTH, write_tiny

from specdec_cli.app import draft_choice
from specdec_cli.app.draft_choice import (
    Choice,
    cache_bytes_per_token,
    choose,
    fit,
    measure_drafts,
    sources,
    worth_loading,
)
from specdec_cli.app.draft_models import DraftFile
from specdec_cli.app.experience_store import keep
from specdec_cli.app.session import LoadOptions, Session, setting_of
from specdec_cli.core.experience import Experience, Kind
from specdec_cli.core.pass_seconds import PassSeconds
from specdec_cli.engine.gguf import read_header
from specdec_cli.models.origins import fingerprint

DEAR = {1: 0.032, 2: 0.061, 4: 0.102, 8: 0.21}  # a Q4_K_M target: every row costs
CHEAP = {1: 0.099, 2: 0.109, 4: 0.139, 8: 0.168}  # a BF16 target: rows are nearly free
DRAFT = {1: 0.012, 8: 0.03, 16: 0.05, 32: 0.1}


def known(verify: dict[int, float], draft: dict[int, float] = DRAFT) -> Experience:
    return Experience(PassSeconds(verify), {"draft": PassSeconds(draft)})


def test_what_is_not_known_is_loaded_and_measured() -> None:
    for experience in (Experience(), Experience(PassSeconds(DEAR)), known(DEAR)):
        key = "other" if experience.drafts else "draft"
        assert worth_loading(experience, key, None, 10) == ""


def test_a_draft_that_pays_is_loaded_and_one_that_cannot_is_not() -> None:
    assert worth_loading(known(CHEAP), "draft", None, 10) == ""
    reason = worth_loading(known(DEAR), "draft", None, 10)
    assert "even with 85%" in reason
    assert "measured" in reason


def test_a_better_record_than_hoped_for_counts() -> None:
    """With 85 % right this draft gains nothing, with 99 % it does."""
    slow = dict.fromkeys((1, 32), 0.05)
    experience = known(CHEAP, slow)
    assert worth_loading(experience, "draft", None, 10) != ""
    record = experience.of("draft", "greedy", Kind.self)
    record.saw([0.99] * 400, [1.0] * 400)
    assert worth_loading(experience, "draft", None, 10) == ""


@pytest.mark.parametrize(
    ("answer", "prompt", "loaded"),
    [(None, 5000, True), (128, 40, True), (16, 40, True), (16, 5000, False), (4, 200, False),
     (1, 1, False), (0, 1, False), (2000, 5000, True)],
)  # fmt: skip
def test_a_short_answer_has_to_pay_for_the_drafts_reading(
    answer: int | None, prompt: int, loaded: bool
) -> None:
    reason = worth_loading(known(CHEAP), "draft", answer, prompt)
    assert (reason == "") is loaded
    if not loaded:
        assert reason.startswith("1 token is" if answer == 1 else f"{answer} tokens are")


def test_a_short_answer_has_to_pay_for_loading_too() -> None:
    assert worth_loading(known(CHEAP), "draft", 16, 40, loading=0.4) == ""
    assert "loading it" in worth_loading(known(CHEAP), "draft", 16, 40, loading=4.0)
    assert worth_loading(known(CHEAP), "draft", None, 40, loading=4.0) == ""


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return write_tiny(tmp_path / "target.gguf")


@pytest.fixture
def files(tmp_path: Path) -> list[DraftFile]:
    return [
        DraftFile(write_tiny(tmp_path / "small.gguf", seed=1)),
        DraftFile(write_tiny(tmp_path / "copy.gguf", seed=2), "self", optional=True),
    ]


def decide(
    options: LoadOptions,
    files: list[DraftFile],
    *,
    wanted: tuple[str, ...] = (),
    answer: int | None = None,
) -> Choice:
    return choose(options, files, wanted=wanted, answer=answer, prompt=10)


def remember(options: LoadOptions, verify: dict[int, float], drafts: list[DraftFile]) -> None:
    seconds = {fingerprint(file.path): PassSeconds(DRAFT) for file in drafts}
    assert keep(setting_of(options), Experience(PassSeconds(verify), seconds)) == ""


def test_without_experience_everything_is_loaded(target: Path, files: list[DraftFile]) -> None:
    choice = decide(LoadOptions(target), files)
    assert choice == Choice(tuple(files), ())
    assert sources(choice.drafts) == (
        "guesses from small (model), copy (self) and the text itself (suffix)"
    )


def test_the_kept_costs_of_this_very_setting_decide(target: Path, files: list[DraftFile]) -> None:
    options = LoadOptions(target, threads=1)
    remember(options, DEAR, files[:1])
    choice = decide(options, files)
    assert [file.name for file in choice.drafts] == ["self"]
    (reason,) = choice.left_out
    assert reason.startswith("the draft small is not loaded: even with")
    assert decide(LoadOptions(target, threads=2), files).left_out == ()


def test_what_was_asked_for_is_loaded_whatever_it_costs(
    target: Path, files: list[DraftFile]
) -> None:
    options = LoadOptions(target, threads=1)
    remember(options, DEAR, files)
    assert decide(options, files).drafts == ()
    assert decide(options, files, wanted=("model",)).drafts == (files[0],)
    assert decide(options, files, wanted=("self",)).drafts == (files[1],)


def test_a_new_draft_is_measured_once_before_it_is_used(
    target: Path, files: list[DraftFile]
) -> None:
    with Session(LoadOptions(target, drafts=tuple(files), threads=1)) as session:
        keys = [draft.key for draft in session.drafts]
        known = session.experience.drafts[keys[0]] = PassSeconds(DRAFT)
        measure_drafts(session)
        assert session.experience.drafts[keys[0]] is known
        assert 0 < session.experience.drafts[keys[1]](1) < 1
        assert not session.draft("self").context.cached([1, 2, 3])


def with_memory(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    found = SimpleNamespace(available=size)
    monkeypatch.setattr(draft_choice.psutil, "virtual_memory", lambda: found)


def needed(path: Path, context: int = CONTEXT) -> int:
    per_token = LAYERS * HEADS * 2 * (WIDTH // HEADS) * 2
    return path.stat().st_size + context * per_token


def test_what_does_not_fit_is_left_out_and_said(
    target: Path, files: list[DraftFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = LoadOptions(target)
    model, own = files
    room = needed(target) + needed(model.path) + needed(own.path)
    with_memory(monkeypatch, room)
    assert decide(options, files).left_out == ()
    with_memory(monkeypatch, room - 1)
    choice = decide(options, files)
    assert choice.drafts == (model,)
    assert choice.left_out[0].startswith("the self draft is not loaded: 0.0 GiB needed")
    with_memory(monkeypatch, needed(target))
    assert decide(options, files).drafts == ()
    assert decide(options, files, wanted=("model",)).drafts == (model,)
    assert decide(options, files[1:], wanted=("self",)).drafts == ()


def test_a_longer_context_needs_more(
    target: Path, files: list[DraftFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_memory(monkeypatch, needed(target, 300) + needed(files[0].path, 300))
    assert fit(LoadOptions(target, context_size=300), files[:1]).left_out == ()
    assert fit(LoadOptions(target, context_size=301), files[:1]).left_out != ()


def test_the_cache_is_reckoned_as_the_session_does(target: Path) -> None:
    with Session(LoadOptions(target, threads=1)) as session:
        expected = session.model.cache_bytes_per_token
    assert cache_bytes_per_token(read_header(target)) == expected > 0


def test_a_damaged_self_draft_is_left_out(target: Path, files: list[DraftFile]) -> None:
    own = files[1].path
    own.write_bytes(own.read_bytes()[:-1000])
    choice = decide(LoadOptions(target), files)
    assert choice.drafts == (files[0],)
    assert "truncated" in choice.left_out[0]


def test_a_self_draft_that_cannot_draft_is_told_and_left(target: Path, tmp_path: Path) -> None:
    other = write_tiny(tmp_path / "other.gguf", renamed={100: "x", 101: "y"}, extra_tokens=500)
    unsupported = write_tiny(tmp_path / "odd.gguf", architecture="unheardof")
    for path in (other, unsupported):
        file = DraftFile(path, "self", optional=True)
        with Session(LoadOptions(target, drafts=(file,), threads=1)) as session:
            assert session.drafters == ("suffix",)
            assert any(f"{path.name} does not draft" in notice for notice in session.notices)
