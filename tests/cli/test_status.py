"""csp agents, status and config: the lines they make of the room's answers."""

import time
from typing import Any

import pytest

from csp.cli import status
from csp.errors import Forbidden
from csp.human.safe_text import one_line
from csp.panes.room_processes import RoomProcesses
from tests.cli.recording import Recorded, run

NO_MODE: dict[str, Any] = {"mode": "freeform", "sessionId": None}


def agent(id: str = "claude", **fields: Any) -> dict[str, Any]:
    return {"id": id, "state": "idle", "role": "agent", "kind": "cli", "queued": 0} | fields


def waiting(number: int = 1, **fields: Any) -> dict[str, Any]:
    item = {
        "id": f"m-{number}",
        "seq": number,
        "sender": "human",
        "agent": "claude",
        "state": "queued",
        "text": "hi",
    }
    return item | {"at": time.time() - 3700} | fields


def room(agents: list[dict[str, Any]], **more: Any) -> Recorded:
    health = {"room": "den", "status": "ok", "seq": 7, "uptime_s": 90_000, "journal": {"writable": True}}
    answers = {
        "/health": health,
        "/agents": agents,
        "/mode": NO_MODE,
        "/sessions": {"items": []},
        "/queue": {"items": []},
        "/attention": {"items": []},
        "/usage": {"items": []},
    }
    return Recorded(answers | {f"/{name}": value for name, value in more.items()})


def lines(gateway: Recorded, verb: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert run(gateway, verb) == 0
    return capsys.readouterr().out.splitlines()


def test_the_columns_of_agents_line_up(capsys: pytest.CaptureFixture[str]) -> None:
    agents = [
        agent("ann", kind="api", role="orchestrator", share=True),
        agent("longer-name", state="busy", detail="a  b\n" + "x" * 200, queued=12),
    ]
    first, second = lines(room(agents), "agents", capsys)

    assert first.split() == ["ann", "idle", "orchestrator,", "api", "shares", "its", "pane"]
    assert second.endswith(f"  cli                12 waiting · a b {'x' * 95}…")
    assert first.index("orchestrator, ") == second.index("cli ")


def test_where_agents_work_is_said_where_it_differs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    agents = [agent("ann"), agent("bob"), agent("far")]
    for dirs, said in (
        ({"ann": "/w", "bob": "/w", "gone": "/x"}, []),
        ({"ann": "/w", "bob": "/h/worktrees/bob"}, ["ann works in /w", "bob works in /h/worktrees/bob"]),
    ):
        monkeypatch.setattr(RoomProcesses, "directories", lambda _, dirs=dirs: dirs)
        out = lines(room(agents), "status", capsys)

        assert [line for line in out if "works in" in line] == said


def test_nobody_is_said_to_be_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(room([]), "agents", capsys) == ["no agents"]


@pytest.mark.parametrize(
    ("dialog", "shown"),
    [
        ({"tool": "Bash", "arguments": "ls"}, ["wants Bash: ls"]),
        ({"tool": "Bash"}, ["wants Bash"]),
        ({"arguments": "ls\n -l"}, ["wants ls -l"]),
        ({"question": "Sure?", "choices": [{"number": 1, "label": "Yes"}, "odd"]}, ["Sure?", "1 Yes"]),
    ],
)
def test_a_dialog_is_shown_as_far_as_it_is_known(dialog: dict[str, Any], shown: list[str]) -> None:
    found = status.dialog_lines(agent(dialog=dialog))

    assert found == [
        *(f"    {line}" for line in shown),
        "    answer with: csp approve claude [--choice N], or csp deny claude",
    ]


def test_status_begins_with_the_room(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(room([]), "status", capsys)[0] == "room den at http://127.0.0.1:9: ok, seq 7, up 1 d"


def test_status_says_what_is_wrong_with_the_journal() -> None:
    health = {"room": "den", "status": "degraded", "seq": 7, "uptime_s": 5.9}
    found = status.health_lines("u", health | {"journal": {"writable": False, "damaged": [3, 9]}})

    assert found == [
        "room den at u: degraded, seq 7, up 5 s",
        "journal: not writable, nothing new is accepted",
        "journal: 2 damaged lines, see: csp doctor --journal",
    ]
    assert len(status.health_lines("u", health | {"journal": {"writable": True}})) == 1
    assert len(status.health_lines("u", health | {"journal": {"damaged": [3]}})) == 2


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({}, "queued for 1 h, claude has not started on it yet: hi"),
        ({"state": "typed"}, "typed for 1 h, it is being typed: hi"),
        (
            {"state": "held", "reason": "paused"},
            "held (paused) for 1 h, claude is paused; continue with csp resume claude: hi",
        ),
        (
            {"state": "held", "reason": "loop"},
            "held (loop) for 1 h, 8 agent-to-agent messages in a row; release it with csp continue 1: hi",
        ),
    ],
)
def test_what_waits_says_why_and_what_ends_it(fields: dict[str, Any], shown: str) -> None:
    assert status.queue_lines([waiting(**fields)]) == [f"waiting: #1 from human to claude: {shown}"]


@pytest.mark.parametrize(("count", "more"), [(20, 0), (21, 1)])
def test_twenty_of_what_waits_are_shown_the_rest_is_counted(count: int, more: int) -> None:
    found = status.queue_lines([waiting(number) for number in range(count)])

    assert len([line for line in found if " from human " in line]) == 20
    assert (f"waiting: {more} more; list all with: csp status --json" in found) == bool(more)


def test_a_token_that_may_not_see_the_queue_sees_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    found = lines(room([], queue=Forbidden("no")), "status", capsys)

    assert found[-1] == "waiting messages are shown only with the room's token"


def test_status_says_what_was_spent(capsys: pytest.CaptureFixture[str]) -> None:
    row = {
        "agent": "gpt",
        "model": "m",
        "replies": 1,
        "unpriced": 0,
        "input": 5,
        "output": 2,
        "cost_usd": 0.5,
        "cached": 1,
        "new": 6,
    }
    found = lines(room([], usage={"items": [row], "prices": "a list"}), "status", capsys)

    assert found[-2:] == [
        "gpt (m): 1 reply, 6 new tokens (2 output), 1 cached, $0.5000",
        "prices: a list",
    ]


def test_only_sessions_that_run_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    session = {
        "id": "s-1",
        "mode": "debate",
        "status": "paused",
        "round": 1,
        "maxRounds": 3,
        "topic": "",
        "tokens": 0,
    }
    items = [session, session | {"id": "s-2", "endedAt": 5.0}, session | {"id": "s-3", "maxRounds": 0}]
    found = lines(room([], sessions={"items": items}), "status", capsys)

    assert found[1:3] == [
        "debate s-1: paused, round 2 of 3, no topic",
        "debate s-3: paused, round 2, no topic",
    ]
    assert not any("s-2" in line for line in found)


@pytest.mark.parametrize(("length", "shown"), [(60, "x" * 60), (61, "x" * 59 + "…")])
def test_a_long_text_is_cut_at_its_limit(length: int, shown: str) -> None:
    assert one_line("x" * length, 60) == shown


@pytest.mark.parametrize(
    ("boards", "shown"),
    [
        ({}, []),
        ({"count": 1, "notes": 0, "bytes": 0, "largest_bytes": 0, "max_bytes": 4096}, []),
        (
            {"count": 2, "notes": 5, "bytes": 2560, "largest_bytes": 2048, "max_bytes": 4096},
            ["whiteboards: 2, 5 notes, 2.5 KiB, the largest 50% full"],
        ),
        (
            {"count": 1, "notes": 1, "bytes": 1024, "largest_bytes": 1024, "max_bytes": 0},
            ["whiteboards: 1, 1 notes, 1.0 KiB"],
        ),
    ],
)
def test_the_size_of_the_whiteboards_is_shown(boards: dict[str, int], shown: list[str]) -> None:
    health = {"room": "den", "status": "ok", "seq": 7, "uptime_s": 5.9, "journal": {}}

    assert status.health_lines("u", health | {"boards": boards})[1:] == shown
