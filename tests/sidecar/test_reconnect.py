"""A room is found again: elsewhere, as another one, or not at all."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from msgspec.structs import replace

from csp.errors import NotFound, Refused, Unreachable
from csp.sidecar.brain import reconnect as module
from csp.sidecar.brain.reconnect import (
    RoomConnection,
    find_room,
    has_moved,
    rejoin,
    room_id_of,
    running_room,
    try_to_save,
)
from csp.sidecar.run_record import SidecarRecord
from tests.rooms import ThreadRoom


@pytest.fixture
def run(tmp_path: Path) -> SidecarRecord:
    folder = tmp_path / "state" / "default.agents" / "ada-2"
    folder.mkdir(parents=True)
    return SidecarRecord(
        name="ada", agent="ada-2", token="old", url="http://old", room="default", role="orchestrator", pid=1,
        profile="/p/claude.toml", argv=["c"], env={}, cwd="/", folder=str(folder), started=1.0,
    )  # fmt: skip


@pytest.fixture
def room() -> RoomConnection:
    return RoomConnection(url="http://new", token="room's")


def at(room: RoomConnection | None) -> Any:
    return mock.patch.object(module, "running_room", return_value=room)


class FakeGateway:
    """A gateway with these agents that says this of itself; an earlier one says no id."""

    def __init__(
        self,
        agents: list[str],
        error: Refused | None = None,
        health: Any = None,
        history: Sequence[dict[str, object]] = (),
    ) -> None:
        self.agents, self.error, self.history = agents, error, history
        self.health = {"seq": 9, "roomId": "r-1"} if health is None else health
        self.bodies: list[tuple[str, str, Any]] = []

    def __call__(self, url: str, token: str) -> "FakeGateway":
        self.url, self.token = url, token
        return self

    def get(self, path: str, **query: object) -> Any:
        if path == "/health":
            return self.health
        if path == "/history":
            assert query == {"after": 0, "limit": 1}
            return {"items": list(self.history)}
        return [{"id": name} for name in self.agents]

    def post(self, path: str, body: Any) -> dict[str, str]:
        self.bodies.append((self.url, self.token, body))
        if self.error:
            raise self.error
        return {"agentId": "ada-3", "token": "new"}


def served_by(gateway: FakeGateway) -> Any:
    return mock.patch.object(module, "GatewayClient", gateway)


def test_a_room_says_itself_where_it_runs(run: SidecarRecord, tmp_path: Path) -> None:
    known = {"url": "http://new", "token": "t", "pid": 1}
    with mock.patch.object(module, "read_running", return_value=known) as read:
        assert running_room(run) == RoomConnection(url="http://new", token="t")
    assert read.call_args.args == (str(tmp_path / "state" / "default.json"),)
    for half in (None, {"url": "http://new"}):
        with mock.patch.object(module, "read_running", return_value=half):
            assert running_room(run) is None


def test_a_room_has_moved_if_it_runs_elsewhere(run: SidecarRecord, room: RoomConnection) -> None:
    with at(room):
        assert has_moved(run)
    with at(room._replace(url="http://old")):
        assert not has_moved(run)
    with at(None):
        assert not has_moved(run)


def test_a_room_says_its_id(room: RoomConnection) -> None:
    with served_by(FakeGateway([])):
        assert room_id_of(room) == "r-1"


def test_an_earlier_gateway_is_known_by_what_its_history_begins_with(room: RoomConnection) -> None:
    def id_of(*history: dict[str, object]) -> str:
        with served_by(FakeGateway([], health={"seq": 9}, history=history)):
            return room_id_of(room)

    first = {"ts": 1.5, "id": "e-1", "seq": 1}
    assert id_of(first) == id_of(first | {"text": "[redacted]"}) != ""
    assert id_of(first | {"ts": 2.5}) != id_of(first) != id_of(first | {"id": "e-2"})
    assert id_of() == ""


def test_a_room_that_does_not_answer_has_no_id(room: RoomConnection) -> None:
    class Silent(FakeGateway):
        def get(self, path: str, **query: object) -> Any:
            raise NotFound("nothing here")

    for gateway in (Silent([]), FakeGateway([], health={"roomId": 7}), FakeGateway([], health=[])):
        with served_by(gateway):
            assert room_id_of(room) == ""


def test_a_brain_that_was_left_behind_does_not_overwrite_the_record_of_the_next(
    run: SidecarRecord, room: RoomConnection
) -> None:
    following = replace(run, pid=2, token="new")
    following.save(Path(run.folder))
    with at(room), served_by(FakeGateway([])):
        find_room(run)

    assert not try_to_save(replace(run, transcripts=["/t.jsonl"]))
    assert SidecarRecord.load(Path(run.folder)) == following
    assert try_to_save(run, is_first=True)
    assert SidecarRecord.load(Path(run.folder)) == run


def test_the_address_and_the_id_are_noted_once(run: SidecarRecord, room: RoomConnection) -> None:
    with at(room), served_by(FakeGateway([])):
        found = find_room(run)
    other = FakeGateway([], health={"roomId": "r-2"})
    with at(room), served_by(other), mock.patch.object(module, "try_to_save") as saved:
        again = find_room(found)

    assert (found.url, found.room_id) == ("http://new", "r-1")
    assert SidecarRecord.load(Path(run.folder)) == found == again
    assert not saved.called


def test_without_a_room_the_record_stays_as_it_is(run: SidecarRecord) -> None:
    with at(None):
        assert find_room(run) is run


def test_a_record_that_cannot_be_written_is_no_end(run: SidecarRecord) -> None:
    with mock.patch.object(SidecarRecord, "save", side_effect=OSError("full")):
        assert not try_to_save(run)
    assert try_to_save(run)


def test_an_agent_that_was_removed_does_not_join_again(run: SidecarRecord, room: RoomConnection) -> None:
    gateway = FakeGateway([])
    with at(room), served_by(gateway):
        known = find_room(run)
        assert not rejoin(known)
        assert gateway.bodies == []


@pytest.mark.parametrize(
    ("agents", "room_id"), [(["ada-2"], ""), ([], ""), ([], "r-2"), (["ada-2"], "r-1"), (["ada-2"], "r-2")]
)
def test_a_room_that_forgot_us_is_joined_anew(
    run: SidecarRecord, room: RoomConnection, agents: list[str], room_id: str
) -> None:
    known, gateway = replace(run, room_id=room_id), FakeGateway(agents)
    with at(room), served_by(gateway):
        assert rejoin(known)

    body = {"agentId": "ada", "kind": "cli", "role": "orchestrator", "capabilities": ["claude"]}
    assert gateway.bodies == [("http://new", "room's", body)]
    saved = SidecarRecord.load(Path(run.folder))
    assert saved is not None
    assert (saved.url, saved.agent, saved.token, saved.room_id) == ("http://new", "ada-3", "new", "")


def test_without_a_room_nobody_joins(run: SidecarRecord, room: RoomConnection) -> None:
    with at(None), pytest.raises(Unreachable, match="'default' is not running"):
        rejoin(run)
    with (
        at(room),
        served_by(FakeGateway([], Refused("full"))),
        pytest.raises(Refused),
    ):
        rejoin(run)


def test_a_room_without_an_id_is_joined_anew(run: SidecarRecord, room: RoomConnection) -> None:
    """Two rooms that are not known are not the same one."""
    with at(room), served_by(FakeGateway([], health={"seq": 0})):
        assert rejoin(run)


@pytest.mark.parametrize("is_reset", [False, True])
def test_a_real_room_takes_an_agent_back_only_after_a_reset(
    run: SidecarRecord, tmp_path: Path, is_reset: bool
) -> None:
    with ThreadRoom(tmp_path / "room") as served:
        state_dir = served.home.parent / "run" / "csp"
        folder = state_dir / "default.agents" / "ada"
        folder.mkdir(parents=True)
        agent = served.gateway.post("/register", {"agentId": "ada"})["agentId"]
        known = find_room(replace(run, agent=agent, folder=str(folder)))
        if is_reset:
            served.stop()
            (served.folder / "journal.jsonl").unlink()
            served.start()
        else:
            served.gateway.delete(f"/agents/{agent}")

        assert rejoin(known) == is_reset
        assert (agent in [item["id"] for item in served.gateway.get("/agents")]) == is_reset
