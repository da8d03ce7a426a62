"""csp pause, approve, stop and their kind without a room."""

import json
from typing import Any, Final

import pytest

from csp.cli import control
from csp.errors import NotFound, Unreachable
from csp.panes.down import RemovedPane
from tests.cli.recording import Clock, Recorded, Several, run


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(control, "time", clock)
    return clock


def pressed(verb: str, *states: Any) -> Recorded:
    """Return a room in which a button of claude goes through these states."""
    answers = [one if isinstance(one, Exception) else {"recipients": {"claude": one}} for one in states]
    return Recorded({f"/agents/claude/{verb}": {"id": "c-1"}, "/messages/c-1": Several(*answers)})


@pytest.mark.parametrize("verb", ["pause", "resume", "share", "noshare", "restart"])
def test_a_switch_waits_for_nothing(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    gateway = Recorded({f"/agents/a%2Fb/{verb}": {"ok": True}})

    assert run(gateway, verb, "a/b", "--json") == 0
    assert gateway.asked == [("POST", f"/agents/a%2Fb/{verb}", {})]
    assert capsys.readouterr() == ('{"ok": true}\n', "")


@pytest.mark.parametrize("verb", ["approve", "deny"])
def test_the_choice_goes_with_the_button(verb: str, clock: Clock) -> None:
    for words, body in ((("--choice", "3"), {"choice": 3}), ((), {})):
        gateway = pressed(verb, {"state": "confirmed"})

        assert run(gateway, verb, "claude", *words) == 0
        assert gateway.asked[0] == ("POST", f"/agents/claude/{verb}", body)


@pytest.mark.parametrize(
    ("state", "code", "said"),
    [
        ({"state": "confirmed"}, 0, "interrupted claude"),
        ({"state": "submitted"}, 0, "sent interrupt to claude, which does not confirm it"),
        ({"state": "failed", "reason": "nothing runs"}, 1, "csp: interrupt claude: failed: nothing runs"),
        ({"state": "expired"}, 1, "csp: interrupt claude: expired before the agent handled it"),
        ({"state": "withdrawn"}, 1, "csp: interrupt claude: withdrawn"),
    ],
)
def test_each_end_of_a_button_is_told(
    state: dict[str, str], code: int, said: str, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway = pressed("interrupt", {"state": "queued"}, {"state": "held"}, {"state": "typed"}, state)

    assert run(gateway, "interrupt", "claude") == code
    assert capsys.readouterr().err == f"{said}\n"
    assert len(gateway.asked) == 5


def test_a_button_without_proof_is_given_up_later_than_the_room_gives_it_up(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(pressed("deny", {"state": "held", "reason": "typing"}), "deny", "claude") == 1
    assert capsys.readouterr().err == "csp: deny claude: no confirmation within 45 s (typing)\n"
    assert 44.5 < sum(clock.slept) < 45.5


def test_a_gateway_that_is_away_keeps_the_button(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    gateway = pressed("approve", Unreachable("away"), {"state": "confirmed"})

    assert run(gateway, "approve", "claude", "--json") == 0
    assert capsys.readouterr().out == '{"id": "c-1", "state": "confirmed"}\n'


def test_a_gateway_that_was_away_is_looked_for_again(clock: Clock) -> None:
    gateway = pressed("approve", Unreachable("away"), {"state": "queued"}, {"state": "confirmed"})
    run(gateway, "approve", "claude")

    assert gateway.reconnects == 1


@pytest.mark.parametrize(
    ("words", "body", "stopped", "said"),
    [
        ((), {}, ["s-1", "s-2"], "stopped s-1, s-2\n"),
        (("--all",), {"all": True}, [], "No mode is running. To stop an agent: csp interrupt AGENT\n"),
    ],
)
def test_stop_stops_one_thread_or_all(
    words: tuple[str, ...],
    body: dict[str, Any],
    stopped: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    gateway = Recorded({"/stop": {"stopped": stopped}})

    assert run(gateway, "stop", *words) == 0
    assert gateway.asked == [("POST", "/stop", body)]
    assert capsys.readouterr() == ("", said)


STILL_RUNS: Final = "; its program still runs in its pane; end it with: csp remove claude --end"


@pytest.mark.parametrize(
    ("words", "pane", "said"),
    [
        ((), RemovedPane.CLOSED, ""),
        ((), RemovedPane.NONE, ""),
        ((), RemovedPane.RUNNING, STILL_RUNS),
        (("--end",), RemovedPane.CLOSED, ""),
    ],
)
def test_remove_ends_a_program_only_where_it_is_told_to(
    words: tuple[str, ...],
    pane: RemovedPane,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    closed = closing(monkeypatch, pane)
    gateway = Recorded({"/agents/claude": {"success": True}})

    assert run(gateway, "remove", "claude", *words) == 0
    assert gateway.asked == [("DELETE", "/agents/claude", {})]
    assert closed == [("default", "claude", bool(words))]
    assert capsys.readouterr().err == f"removed claude{said}\n"


def closing(monkeypatch: pytest.MonkeyPatch, pane: RemovedPane) -> list[tuple[Any, ...]]:
    """Stand for the panes of the room; return whose pane was to be closed."""
    closed: list[tuple[Any, ...]] = []

    def close(*words: Any, ends_program: bool) -> RemovedPane:
        closed.append((*words[1:3], ends_program))
        return pane

    monkeypatch.setattr("csp.panes.down.close_pane_of", close)
    return closed


def test_a_program_that_outlived_its_agent_can_still_be_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    absent = NotFound("unknown agent 'claude'")
    closed = closing(monkeypatch, RemovedPane.CLOSED)

    assert run(Recorded({"/agents/claude": absent}), "remove", "claude", "--end", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"success": True, "pane": "closed"}
    with pytest.raises(NotFound, match="unknown agent"):
        run(Recorded({"/agents/claude": absent}), "remove", "claude")
    assert closed == [("default", "claude", True)]
    closing(monkeypatch, RemovedPane.NONE)
    with pytest.raises(NotFound, match="unknown agent"):
        run(Recorded({"/agents/claude": absent}), "remove", "claude", "--end")
