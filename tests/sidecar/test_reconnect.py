"""A room is found again: elsewhere, as another one, or not at all."""

from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from msgspec.structs import replace

from csp.errors import Refused, Unreachable
from csp.sidecar.brain import reconnect as module
from csp.sidecar.brain.reconnect import (
    RoomConnection,
    find_room,
    has_moved,
    journal_of,
    rejoin,
    running_room,
    try_to_save,
)
from csp.sidecar.run_record import SidecarRecord


@pytest.fixture
def run(tmp_path: Path) -> SidecarRecord:
    folder = tmp_path / "state" / "default.agents" / "ada-2"
    folder.mkdir(parents=True)
    return SidecarRecord(
        name="ada", agent="ada-2", token="old", url="http://old", room="default", role="orchestrator", pid=1,
        profile="/p/claude.toml", argv=["c"], env={}, cwd="/", folder=str(folder), started=1.0,
    )  # fmt: skip


@pytest.fixture
def room(tmp_path: Path) -> RoomConnection:
    (tmp_path / "journal.jsonl").write_text('{"seq": 1}\n{"seq": 2}\n')
    return RoomConnection(url="http://new", token="room's", history=str(tmp_path))


def at(room: RoomConnection | None) -> Any:
    return mock.patch.object(module, "running_room", return_value=room)


def test_a_room_says_itself_where_it_runs(run: SidecarRecord, tmp_path: Path) -> None:
    known = {"url": "http://new", "token": "t", "history": "/h"}
    with mock.patch.object(module, "read_running", return_value=known) as read:
        assert running_room(run) == RoomConnection(url="http://new", token="t", history="/h")
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


def test_a_journal_is_known_by_its_first_line(
    run: SidecarRecord, room: RoomConnection, tmp_path: Path
) -> None:
    with at(room):
        first = journal_of(run)
        (tmp_path / "journal.jsonl").write_text('{"seq": 1}\nother\n')
        same = journal_of(run)
        (tmp_path / "journal.jsonl").write_text('{"seq": 9}\n')
        other = journal_of(run)
        (tmp_path / "journal.jsonl").unlink()
        none = journal_of(run)

    assert first == same != 0
    assert other not in (first, 0)
    assert none == 0


def test_a_brain_that_was_left_behind_does_not_overwrite_the_record_of_the_next(
    run: SidecarRecord, room: RoomConnection
) -> None:
    following = replace(run, pid=2, token="new")
    following.save(Path(run.folder))
    with at(room):
        find_room(run)

    assert not try_to_save(replace(run, transcripts=["/t.jsonl"]))
    assert SidecarRecord.load(Path(run.folder)) == following
    assert try_to_save(run, is_first=True)
    assert SidecarRecord.load(Path(run.folder)) == run


def test_the_address_and_journal_are_noted_once(run: SidecarRecord, room: RoomConnection) -> None:
    with at(room):
        found = find_room(run)
        journal = journal_of(run)
        with mock.patch.object(module, "try_to_save") as saved:
            again = find_room(found)

    assert (found.url, found.journal) == ("http://new", journal)
    assert SidecarRecord.load(Path(run.folder)) == found == again
    assert not saved.called


def test_a_record_that_cannot_be_written_is_no_end(run: SidecarRecord) -> None:
    with mock.patch.object(SidecarRecord, "save", side_effect=OSError("full")):
        assert not try_to_save(run)
    assert try_to_save(run)


class FakeGateway:
    def __init__(self, agents: list[str], error: Refused | None = None) -> None:
        self.agents, self.error = agents, error
        self.bodies: list[tuple[str, str, Any]] = []

    def __call__(self, url: str, token: str) -> "FakeGateway":
        self.url, self.token = url, token
        return self

    def get(self, path: str) -> list[dict[str, str]]:
        return [{"id": name} for name in self.agents]

    def post(self, path: str, body: Any) -> dict[str, str]:
        self.bodies.append((self.url, self.token, body))
        if self.error:
            raise self.error
        return {"agentId": "ada-3", "token": "new"}


def test_an_agent_that_was_removed_does_not_join_again(run: SidecarRecord, room: RoomConnection) -> None:
    with at(room), mock.patch.object(module, "GatewayClient", FakeGateway([])) as gateway:
        known = find_room(run)
        assert not rejoin(known)
        assert gateway.bodies == []


@pytest.mark.parametrize(("agents", "journal"), [(["ada-2"], 0), ([], 0), ([], 12345), (["ada-2"], 12345)])
def test_a_room_that_forgot_us_is_joined_anew(
    run: SidecarRecord, room: RoomConnection, agents: list[str], journal: int
) -> None:
    known = replace(run, journal=journal)
    with at(room), mock.patch.object(module, "GatewayClient", FakeGateway(agents)) as gateway:
        assert rejoin(known)

    body = {"agentId": "ada", "kind": "cli", "role": "orchestrator", "capabilities": ["claude"]}
    assert gateway.bodies == [("http://new", "room's", body)]
    saved = SidecarRecord.load(Path(run.folder))
    assert saved is not None
    assert (saved.url, saved.agent, saved.token, saved.journal) == ("http://new", "ada-3", "new", 0)


def test_without_a_room_nobody_joins(run: SidecarRecord, room: RoomConnection) -> None:
    with at(None), pytest.raises(Unreachable, match="'default' is not running"):
        rejoin(run)
    with (
        at(room),
        mock.patch.object(module, "GatewayClient", FakeGateway([], Refused("full"))),
        pytest.raises(Refused),
    ):
        rejoin(run)


def test_a_room_whose_journal_nobody_can_read_is_joined_anew(
    run: SidecarRecord, room: RoomConnection, tmp_path: Path
) -> None:
    """Two journals that are not known are not the same one."""
    (tmp_path / "journal.jsonl").unlink()
    with at(room), mock.patch.object(module, "GatewayClient", FakeGateway([])):
        assert rejoin(run)
