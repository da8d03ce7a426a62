"""csp collaborate without a room: what it asks for, what it makes of the end."""

from typing import Any

import pytest

from csp.cli import collaborate
from csp.errors import BadInput, Unreachable
from tests.cli.recording import Clock, Recorded, Several, call_of, run

BEGUN = {"handle": "s-1", "thread": "s-1"}


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(collaborate, "time", clock)
    return clock


def view(**fields: Any) -> dict[str, Any]:
    known: dict[str, Any] = {
        "handle": "s-1",
        "reason": None,
        "result": None,
        "failed": [],
        "step": 2,
        "tokens": 30,
        "new": 20,
        "output": 5,
        "cached": 10,
    }
    return known | {"progress": [], "lines": 0, "waiting": ["gpt"]} | fields


def room(*views: Any) -> Recorded:
    return Recorded(
        {
            "/collaborations": BEGUN,
            "/collaborations/s-1": Several(*views),
            "/collaborations/s-1/stop": view(reason="stopped_by_user"),
        }
    )


DONE = view(reason="done", result="The plan.", cost_usd=0.125, failed=["gem"])


def test_every_option_reaches_the_room(capsys: pytest.CaptureFixture[str]) -> None:
    gateway = room()
    options = ("--models", "a,b,", "--mode", "orchestrator", "--max-steps", "4", "--parallel", "3")
    limits = ("--timeout-per-step", "9.5", "--cost-limit", "0.5", "--no-wait")

    assert run(gateway, "collaborate", "a", "plan", *options, *limits) == 0
    assert gateway.bodies == [
        {
            "objective": "a plan",
            "models": ["a", "b"],
            "mode": "orchestrator",
            "max_steps": 4,
            "parallel": 3,
            "timeout_per_step": 9.5,
            "cost_limit_usd": 0.5,
        }
    ]
    assert capsys.readouterr() == ("s-1\n", "started s-1 in thread s-1\n")


def test_going_on_says_so_and_shows_only_what_is_new(capsys: pytest.CaptureFixture[str]) -> None:
    gateway = room(view(lines=5), DONE | {"lines": 6, "progress": ["new"]})

    assert run(gateway, "collaborate", "mind it", "--continue", "s-1", "--max-steps", "2") == 0
    assert gateway.bodies[0] == {"session_id": "s-1", "user_input": "mind it", "max_steps": 2}
    assert gateway.bodies[2]["after"] == 5
    assert capsys.readouterr().err.splitlines()[:2] == ["continued s-1 in thread s-1", "new"]


def test_the_result_is_data_the_rest_is_talk(capsys: pytest.CaptureFixture[str]) -> None:
    gateway = room(view(progress=["one"], lines=1), DONE | {"progress": ["two"], "lines": 2})

    assert run(gateway, "collaborate", "--poll", "s-1") == 0
    out, err = capsys.readouterr()
    assert out == "The plan.\n"
    assert err.splitlines() == [
        "one",
        "two",
        "s-1 ended: done after 2 steps, 0.1250 USD, 20 new tokens (5 output), 10 cached; failed: gem",
    ]
    assert [body["after"] for body in gateway.bodies] == [0, 1]
    assert {body["wait"] for body in gateway.bodies} == {"20.000"}


@pytest.mark.parametrize("reason", ["canceled", "superseded", "too_few", "all_failed", "stopped_by_user"])
def test_an_end_without_anything_to_go_by_is_a_failure(reason: str) -> None:
    assert run(room(view(reason=reason)), "collaborate", "--poll", "s-1") == 1


def test_who_stops_it_has_what_it_wanted() -> None:
    gateway = room()

    assert run(gateway, "collaborate", "--stop", "s-1") == 0
    assert gateway.asked == [("POST", "/collaborations/s-1/stop", {})]


def test_patience_ends_with_a_way_to_go_on(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway = room(view())
    waits: list[float] = []

    def wait(path: str, **query: Any) -> Any:
        waits.append(float(query["wait"]))
        clock.now += waits[-1]
        return Recorded.get(gateway, path, **query)

    monkeypatch.setattr(gateway, "get", wait)

    assert run(gateway, "collaborate", "--poll", "s-1", "--timeout", "25") == 1
    assert waits == [20.0, 5.0, 0.0]
    assert capsys.readouterr().err.splitlines() == [
        "no result within 25 s",
        "s-1 is running; wait for it: csp collaborate --poll s-1",
        "or stop it: csp collaborate --stop s-1",
    ]
    assert call_of("collaborate").args.timeout == 1800.0


def test_poll_without_waiting_says_how_far_it_is() -> None:
    gateway = room(view())

    assert run(gateway, "collaborate", "--poll", "s-1", "--no-wait") == 0
    assert [body["wait"] for body in gateway.bodies] == ["0.000"]
    with pytest.raises(Unreachable):
        run(room(Unreachable("away")), "collaborate", "--poll", "s-1", "--no-wait")


def test_a_gateway_that_is_away_is_waited_for(clock: Clock) -> None:
    gateway = room(Unreachable("away"), view(), DONE)

    assert run(gateway, "collaborate", "--poll", "s-1") == 0
    assert (clock.slept, gateway.reconnects) == ([0.3], 1)


def test_ctrl_c_leaves_it_running(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(collaborate, "watch", interrupt)

    assert run(room(), "collaborate", "--poll", "s-1") == 1
    assert "csp collaborate --stop s-1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--poll", "s-1", "--stop", "s-1"), "expected --poll or --stop, got both"),
        (("--poll", "s-1", "--parallel", "2"), "--poll excludes 'parallel'"),
        (("words", "--stop", "s-1"), "--stop excludes 'objective'"),
        (("--models", "a"), "expected an objective, got nothing"),
        (("a plan",), "expected --models, got nothing"),
    ],
)
def test_mistakes_are_told_before_anything_is_begun(words: tuple[str, ...], problem: str) -> None:
    gateway = Recorded({})
    with pytest.raises(BadInput) as caught:
        run(gateway, "collaborate", *words)

    assert (caught.value.message, gateway.asked) == (problem, [])
