"""When an agent counts as here, and what is said of one that is not."""

from pathlib import Path
from typing import Any, cast

import pytest

from csp.errors import NotFound, Unreachable
from csp.http_client import GatewayClient
from csp.panes import wait_ready
from csp.panes.tmux_session import AgentPane, TmuxSession
from csp.panes.wait_ready import ReadyWait, StartOutcome
from csp.sidecar.run_record import SidecarRecord


def seat(agent: str, pid: int = 7, *, is_dead: bool = False) -> AgentPane:
    return AgentPane(pane=f"%{agent}", window="@0", agent=agent, pid=pid, is_dead=is_dead)


class Room:
    """A gateway and panes that show one picture after the other; the last one stays."""

    def __init__(self) -> None:
        self.pictures: list[list[dict[str, Any]]] = []
        self.rows: dict[str, AgentPane] = {}
        self.answers = {"ann": True}
        self.lines = {"%ann": "no key here"}
        self.asked: list[str] = []

    def get(self, path: str) -> Any:
        self.asked.append(path)
        if path != "/agents":
            if not self.answers.get(path.split("/")[2]):
                raise NotFound("no screen")
            return {}
        picture = self.pictures.pop(0) if len(self.pictures) > 1 else self.pictures[0]
        if not picture:
            raise Unreachable("away")
        return picture

    def seats(self) -> dict[str, AgentPane]:
        return self.rows

    def last_line(self, pane: str) -> str:
        return self.lines.get(pane, "")


class Clock:
    """A time that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(wait_ready, "time", clock)
    return clock


@pytest.fixture
def room() -> Room:
    return Room()


def save_run(folder: Path, agent: str, pid: int) -> None:
    run = SidecarRecord(
        name=agent,
        agent=agent,
        token="t",
        url="u",
        room="default",
        role="agent",
        profile="p",
        cwd="/",
        folder=str(folder / agent),
        **cast(Any, {"pid": pid, "argv": [], "env": {}, "started": 0.0}),
    )
    (folder / agent).mkdir(parents=True)
    run.save(folder / agent)


def wait(room: Room, folder: Path, *agents: str) -> tuple[list[StartOutcome], list[str]]:
    shown: list[str] = []
    panes, gateway = cast(TmuxSession, room), cast(GatewayClient, room)
    return ReadyWait(lambda: gateway, panes, folder).run(agents or ("ann",), shown.append), shown


def state(word: str, *, online: bool = True, id: str = "ann") -> list[dict[str, Any]]:
    return [{"id": id, "state": word, "online": online}]


def test_one_that_rests_and_shows_itself_is_here(room: Room, tmp_path: Path) -> None:
    save_run(tmp_path, "ann", 7)
    room.rows = {"ann": seat("ann")}
    room.pictures = [[], state("starting"), state("starting"), state("busy")]
    found, shown = wait(room, tmp_path)

    assert found == [StartOutcome("ann", "busy")]
    assert shown[0] == "waiting for ann (0 of 1 here)…"


def test_the_state_of_a_sidecar_that_is_no_more_is_not_believed(
    room: Room, tmp_path: Path, clock: Clock
) -> None:
    save_run(tmp_path, "ann", 8)
    room.rows = {"ann": seat("ann", pid=7)}
    room.pictures = [state("idle")]
    found, _ = wait(room, tmp_path)

    assert found == [StartOutcome("ann", "idle", "ann is still starting after 60 s: no key here")]
    assert clock.now == pytest.approx(160, abs=1)


def test_a_brain_that_does_not_answer_yet_is_waited_for(room: Room, tmp_path: Path) -> None:
    save_run(tmp_path, "ann", 7)
    room.rows = {"ann": seat("ann")}
    room.pictures, room.answers, room.lines = [state("idle")], {}, {}
    found, _ = wait(room, tmp_path)

    assert found == [StartOutcome("ann", "idle", "ann is still starting after 60 s")]
    assert "/agents/ann/screen" in room.asked


def test_one_that_never_joins_is_named_with_its_last_words(room: Room, tmp_path: Path) -> None:
    room.rows = {"ann": seat("ann")}
    room.pictures = [state("idle", online=False)]

    assert wait(room, tmp_path)[0] == [
        StartOutcome("ann", "offline", "ann has not joined after 60 s: no key here")
    ]


@pytest.mark.parametrize("rows", [{}, {"ann": seat("ann", is_dead=True)}])
def test_one_that_has_ended_is_not_waited_for(
    room: Room, tmp_path: Path, clock: Clock, rows: dict[str, AgentPane]
) -> None:
    room.rows, room.pictures = rows, [state("idle", online=False)]
    found, shown = wait(room, tmp_path)

    assert found == [
        StartOutcome("ann", "offline", "ann has ended: no key here" if rows else "ann has ended")
    ]
    assert (shown, clock.now) == ([], 100.0)


def test_those_who_are_late_are_named_and_counted(room: Room, tmp_path: Path) -> None:
    for agent in ("ann", "ben"):
        save_run(tmp_path, agent, 7)
    room.answers["ben"] = True
    room.rows = {"ann": seat("ann"), "ben": seat("ben")}
    both = [*state("idle"), *state("starting", id="ben")]
    room.pictures = [both, both, both, [*state("idle"), *state("idle", id="ben")]]
    found, shown = wait(room, tmp_path, "ann", "ben")

    assert found == [StartOutcome("ann", "idle"), StartOutcome("ben", "idle")]
    assert shown[0] == "waiting for ann, ben (0 of 2 here)…"
    assert shown[-1] == "waiting for ben (1 of 2 here)…"
