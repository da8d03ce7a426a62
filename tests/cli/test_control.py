"""csp pause, approve, stop and their kind without a room."""

from typing import Any

import pytest

from csp.cli import control
from csp.errors import Unreachable
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
        ({"state": "submitted"}, 0, "sent interrupt to claude, which gives no proof of it"),
        ({"state": "failed", "reason": "nothing runs"}, 1, "csp: interrupt claude: failed: nothing runs"),
        ({"state": "expired"}, 1, "csp: interrupt claude: expired, the agent did not take it in time"),
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
    assert capsys.readouterr().err == "csp: deny claude: no proof within 45 s (typing)\n"
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


def test_remove_closes_the_pane_of_one_that_has_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    closed: list[tuple[Any, ...]] = []
    monkeypatch.setattr("csp.panes.down.close_ended", lambda *words: closed.append(words[1:3]))
    gateway = Recorded({"/agents/claude": {"success": True}})

    assert run(gateway, "remove", "claude") == 0
    assert gateway.asked == [("DELETE", "/agents/claude", {})]
    assert closed == [("default", "claude")]
    assert capsys.readouterr().err == "removed claude\n"
