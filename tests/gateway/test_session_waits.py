"""A session that waits, over HTTP: its answers, a machine that slept, and the report of the night."""

import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from csp.gateway.sleep_gauge import LEAST_S, SleepGauge
from csp.project import Project
from tests.gateway.served import Clock, Member, ServedRoom, room_settings

HOUR = 3600.0


class Clocks:
    """The two clocks of a machine; only one of them runs while it sleeps."""

    def __init__(self) -> None:
        self.passed, self.awake = 1000.0, 400.0

    def run(self, seconds: float, asleep: float = 0.0) -> None:
        self.awake += seconds
        self.passed += seconds + asleep

    def gauge(self) -> SleepGauge:
        return SleepGauge(lambda: self.passed, lambda: self.awake)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def room(tmp_path: Path, clock: Clock) -> AsyncIterator[ServedRoom]:
    async with ServedRoom(tmp_path / "room", room_settings(), clock) as served:
        yield served


async def limited(room: ServedRoom, member: Member, until: float | None) -> None:
    body = {"state": "limited", "detail": "limit reached"} | ({} if until is None else {"until": until})
    await room.post("/state", body, member.token)


async def begun(room: ServedRoom, **fields: Any) -> tuple[Member, Member]:
    """Start an autopilot whose first agent has its prompt."""
    members = await room.join("ada"), await room.join("bob")
    await room.post("/mode", {"mode": "autopilot", "topic": "go", "agents": ["ada", "bob"], **fields})
    (prompt,) = await room.inbox(members[0])
    await room.post("/delivery", {"id": prompt, "state": "confirmed"}, members[0].token)
    return members


async def test_unknown_reset_is_asked_about_and_answered_with_one_prompt(room: ServedRoom) -> None:
    ada, _ = await begun(room)
    await limited(room, ada, None)
    (item,) = (await room.get("/attention"))["items"]
    assert [answer["key"] for answer in item["answers"]] == ["y", "s", "e", "f"]
    (wait,) = (await room.get("/mode"))["waits"]
    assert (wait["agent"], wait["kind"], wait["at"]) == ("ada", "reset", None)
    assert await room.inbox(ada) == []

    await room.post("/line", {"line": item["answers"][0]["line"]})
    assert len(await room.inbox(ada)) == 1
    assert (await room.get("/mode"))["waits"] == []


async def test_wait_survives_a_restart_of_the_gateway(room: ServedRoom, clock: Clock) -> None:
    ada, _ = await begun(room)
    await limited(room, ada, clock.now + HOUR)
    before = (await room.get("/mode"))["waits"]
    await room.restart()
    assert (await room.get("/mode"))["waits"] == before
    assert await room.inbox(ada) == []

    clock.now += 2 * HOUR
    room.gateway.set_alarm()
    await room.until(lambda: _has_prompts(room, ada, 1), "the prompt after the reset")


async def _has_prompts(room: ServedRoom, member: Member, number: int) -> bool:
    return len(await room.inbox(member)) == number


async def test_limit_that_asks_is_continued_by_a_person(room: ServedRoom, clock: Clock) -> None:
    await begun(room, limits={"minutes": 10}, on_hard_limit="ask")
    clock.now += 600
    room.gateway.set_alarm()

    async def is_held() -> bool:
        return bool((await room.get("/mode"))["held"] == "emergency_minutes")

    await room.until(is_held, "the pause at the limit")
    session = (await room.get("/mode"))["sessionId"]
    await room.post(f"/sessions/{session}/decide", {"choice": "continue"})
    view = await room.get("/mode")
    assert (view["status"], view["held"], view["waitingFor"]) == ("running", None, ["ada"])


async def test_sleep_of_the_machine_ends_no_turn(room: ServedRoom, clock: Clock) -> None:
    clocks = Clocks()
    room.gateway.writer.sleep_gauge = clocks.gauge()
    ada, bob = await begun(room)
    clock.now += 8 * HOUR
    clocks.run(10, asleep=8 * HOUR)
    # The first thing that happens after it is the report of another agent.
    await room.post("/state", {"state": "busy"}, bob.token)

    assert (await room.get("/mode"))["waitingFor"] == ["ada"]
    slept = [item for item in await room.history("?types=mode") if item["change"] == "slept"]
    assert [item["minutes"] for item in slept] == [480.0]
    report = await room.get("/report?since=0")
    assert report["slept_s"] == 8 * HOUR
    assert len(await room.inbox(ada)) == 0


async def test_sleep_is_noticed_without_a_command(room: ServedRoom, clock: Clock) -> None:
    clocks = Clocks()
    room.gateway.writer.sleep_gauge = clocks.gauge()
    await begun(room)
    clock.now += 100
    clocks.run(0, asleep=100)
    room.gateway.writer.note_sleep()
    await room.gateway.writer.settle()

    assert [item["change"] for item in await room.history("?types=mode")][-1] == "slept"


def test_gauge_measures_only_sleep() -> None:
    clocks = Clocks()
    gauge = clocks.gauge()
    clocks.run(HOUR)
    assert gauge.take() == 0
    clocks.run(5, asleep=100)
    assert gauge.take() == 100
    assert gauge.take() == 0
    for _ in range(3):
        clocks.run(1, asleep=LEAST_S / 2)
    # Small differences add up, and nothing is lost.
    assert gauge.take() == 1.5 * LEAST_S


async def test_report_tells_the_night(room: ServedRoom, clock: Clock, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    author = ("-c", "user.name=ada", "-c", "user.email=a@b")
    for words in (("init", "-q"), (*author, "commit", "-q", "--allow-empty", "-m", "Fix the parser")):
        subprocess.run(["git", *words], cwd=project, check=True, capture_output=True)
    identity = str(project / ".git")
    room.gateway.settings = replace(room.gateway.settings, project=Project(root=project, identity=identity))
    ada, _ = await begun(room)
    await limited(room, ada, None)
    session = (await room.get("/mode"))["sessionId"]
    view = await room.get(f"/report?session={session}")

    assert [(one["id"], one["mode"]) for one in view["sessions"]] == [(session, "autopilot")]
    assert [(one["agent"], one["turns"]) for one in view["agents"]] == [("ada", 1)]
    assert [(one["agent"], one["kind"], one["ended"]) for one in view["waits"]] == [("ada", "reset", None)]
    assert view["next"] == f"/decide {session} continue"
    (commits,) = view["commits"]
    assert (commits["directory"], commits["total"]) == (str(project), 1)
    assert commits["subjects"][0].endswith("Fix the parser (ada)")
    missing = await room.call("GET", "/report?session=s-999")
    assert (missing.status, missing.data["error"]) == (404, "unknown session 's-999'")


async def test_agents_get_no_report(room: ServedRoom) -> None:
    ada = await room.join("ada")

    assert (await room.call("GET", "/report", token=ada.token)).status == 403
