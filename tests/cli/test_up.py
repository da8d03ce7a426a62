"""csp up and csp down: what was asked for, what is said about it."""

from pathlib import Path
from typing import Any

import pytest

from csp.cli import up
from csp.errors import BadInput
from tests.cli.recording import call_of


def test_what_was_wished_for_is_passed_on(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    words = ("--agents", "b, a,,b", "--demo", "--orchestrator", "--dir", "sub")
    wish = up._wish(call_of("up", *words, cwd=tmp_path))
    plain = up._wish(call_of("up", cwd=tmp_path))

    assert (wish.only, wish.demo, wish.orchestrator) == (("b", "a"), True, True)
    assert wish.dir == (tmp_path / "sub").resolve()
    assert (plain.only, plain.demo, plain.orchestrator, plain.dir) == ((), False, False, tmp_path.resolve())


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--agents", " ,"), "--agents: expected names with commas between, got nothing"),
        (("--dir", "nosuch"), "--dir: expected a directory, got 'nosuch'"),
    ],
)
def test_a_wish_that_makes_no_sense_is_refused(words: tuple[str, ...], problem: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        up._wish(call_of("up", *words, cwd=tmp_path))

    assert caught.value.message == problem


SUMMARY = {"room": "den", "session": "csp-den"}
HERE = {"agent": "ann", "state": "idle", "problem": ""}
GONE = {"agent": "bob", "state": "ended", "problem": "bob has ended"}


@pytest.mark.parametrize(
    ("outcomes", "code", "said"),
    [
        ([HERE], 0, ["room den is up with ann"]),
        ([HERE, GONE], 0, ["csp: bob has ended", "room den is up with ann"]),
        ([GONE], 1, ["csp: bob has ended", "room den is up with nobody"]),
        ([], 0, ["room den is up with nobody"]),
    ],
)
def test_up_fails_where_nobody_came(
    outcomes: list[dict[str, Any]], code: int, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert up._report(call_of("up"), SUMMARY, outcomes, ["tmux"], False) == code
    assert capsys.readouterr().err.splitlines() == [*said, "open it with: tmux attach -t csp-den"]


def test_a_script_learns_of_everyone_who_did_not_come(capsys: pytest.CaptureFixture[str]) -> None:
    assert up._report(call_of("up", "--json"), SUMMARY, [HERE, GONE], [], False) == 1
    assert up._report(call_of("up", "--json"), SUMMARY, [HERE], [], False) == 0
    assert '"problem": "bob has ended"' in capsys.readouterr().out


def test_up_attaches_by_becoming_tmux(monkeypatch: pytest.MonkeyPatch) -> None:
    became: list[tuple[str, list[str]]] = []
    monkeypatch.setattr("csp.cli.up.os.execvp", lambda program, argv: became.append((program, argv)))
    up._report(call_of("up"), SUMMARY, [HERE], ["tmux", "attach"], True)

    assert became == [("tmux", ["tmux", "attach"])]


def test_a_plan_is_shown_with_roles_models_and_worktrees(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"id": "ann", "role": "agent", "command": "claude", "cwd": "/w", "worktree": False, "provider": ""}
    rows = [
        row,
        row | {"id": "bob", "worktree": True, "role": "orchestrator"},
        row | {"id": "gpt", "provider": "openai"},
    ]
    found = {"notes": ["a note"], "room": "den", "history": "/h", "session": "csp-den", "agents": rows}
    up._show_plan(call_of("up"), found | {"windows": [["you", "ann"], ["bob"]]})
    out, err = capsys.readouterr()

    assert err == "csp: a note\n"
    assert out.splitlines() == [
        "room den, history in /h",
        "tmux session csp-den",
        "  window 1: you, ann",
        "  window 2: bob",
        "  ann: claude (in /w)",
        "  bob, orchestrator: claude (in a git worktree of its own)",
        "  gpt: claude (a model behind an API)",
        "nothing was started",
    ]


def test_who_does_not_confirm_a_purge_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended: list[object] = []
    monkeypatch.setattr(up, "confirm", lambda question: False)
    monkeypatch.setattr("csp.panes.gateway.running_room", lambda *_: None)
    monkeypatch.setattr("csp.panes.ending.end_room", lambda *words: ended.append(words))

    assert up.down(call_of("down", "--purge")) == 1
    assert (ended, capsys.readouterr().err) == ([], "nothing was ended\n")
