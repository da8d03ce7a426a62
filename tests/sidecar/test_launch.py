"""What a launcher leaves behind for the brain, how it joins the room, what it undoes where it fails."""

import os
import uuid
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from csp.errors import Broken, CspError, NotFound, Refused, Unauthenticated
from csp.sidecar import launch as module
from csp.sidecar.launch import Chosen, Order, Room, child_env, find_command, join, launch, leave, new_session
from csp.sidecar.run import Run


class FakeGateway:
    """Answers /register; remembers who asked for what."""

    calls: list[tuple[str, str, str, Any]]
    refused: dict[str, CspError]

    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = url, token

    def post(self, path: str, body: dict[str, object]) -> dict[str, object]:
        FakeGateway.calls.append((self._url, self._token, path, body))
        if self._token in FakeGateway.refused:
            raise FakeGateway.refused[self._token]
        return {"agentId": "ada-2", "token": "agent's"}


@pytest.fixture(autouse=True)
def _fake_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeGateway.calls, FakeGateway.refused = [], {}
    monkeypatch.setattr(module, "Gateway", FakeGateway)


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(url="http://room", token="room's", name="default", state_dir=str(tmp_path / "state"))


def order(tmp_path: Path, **fields: Any) -> Order:
    profile = Chosen(name="generic", capture="screen", source="/profiles/generic.toml")
    known: dict[str, Any] = {
        "name": "ada", "role": "agent", "command": ["/bin/true", "-x"], "profile": profile,
        "cwd": str(tmp_path), "env": {"PATH": "/bin", "CSP_ROOM": "default", "KEPT": "yes"},
    }  # fmt: skip
    return Order(**(known | fields))


def launched(wanted: Order, room: Room) -> tuple[Run, Any]:
    """Launch up to the point where the relay would begin; return the record and the relay's plan."""
    with (
        mock.patch.object(module, "start_child", return_value=(4321, 99)),
        mock.patch.object(module, "open_life", return_value=(-1, -1)),
        mock.patch.object(module, "mend"),
        mock.patch.object(module, "exec_relay") as relayed,
    ):
        launch(wanted, room)
    run = Run.load(Path(room.state_dir) / "default.agents" / "ada-2")
    assert run is not None
    return run, relayed.call_args.args


def test_the_record_has_all_that_was_asked_for(tmp_path: Path, room: Room) -> None:
    run, (plan, env, title) = launched(
        order(
            tmp_path, role="orchestrator", initial_prompt="begin", allow_shell=True, injection_timeout_s=3.5
        ),
        room,
    )

    assert run.injection_timeout_s == 3.5
    assert (run.name, run.agent, run.token, run.url, run.room) == (
        "ada", "ada-2", "agent's", "http://room", "default",
    )  # fmt: skip
    assert (run.role, run.initial_prompt, run.allow_shell) == ("orchestrator", "begin", True)
    assert (run.argv, run.asked) == (["/bin/true", "-x"], ["/bin/true", "-x"])
    assert (run.profile, run.cwd, run.pid) == ("/profiles/generic.toml", str(tmp_path), os.getpid())
    assert run.folder == str(Path(room.state_dir) / "default.agents" / "ada-2")
    assert (plan.child, plan.master, plan.cwd, plan.argv) == (4321, 99, str(tmp_path), run.argv)
    assert plan.log == f"{run.folder}/brain.log" and plan.state == f"{room.state_dir}/terminals"
    assert plan.brain_argv[1:3] == ["-P", "-c"] and repr(run.folder) in plan.brain_argv[3]
    assert (env["CSP_ROOM"], title) == ("default", "csp-sidecar-ada-2")


def test_a_message_waits_ten_seconds_if_nothing_else_is_said(tmp_path: Path, room: Room) -> None:
    run, _ = launched(order(tmp_path), room)

    assert (run.injection_timeout_s, run.allow_shell, run.initial_prompt) == (10.0, False, "")


def test_the_token_of_the_agent_lies_where_its_commands_find_it(tmp_path: Path, room: Room) -> None:
    launched(order(tmp_path), room)
    token = Path(room.state_dir) / "default.agents" / "ada-2.token"

    assert token.read_text() == "agent's"
    assert token.stat().st_mode & 0o777 == 0o600
    assert token.parent.stat().st_mode & 0o777 == 0o700


def test_a_name_that_was_left_behind_is_had_again_with_its_transcripts(tmp_path: Path, room: Room) -> None:
    run, _ = launched(order(tmp_path), room)
    Run(**{**vars_of(run), "pid": 2**22 + 1, "transcripts": ["/t.jsonl"]}).save(Path(run.folder))
    FakeGateway.calls.clear()
    again, _ = launched(order(tmp_path), room)

    assert [(token, path) for _, token, path, _ in FakeGateway.calls] == [("agent's", "/register")]
    assert again.earlier == ["/t.jsonl"]


def vars_of(run: Run) -> dict[str, Any]:
    return {name: getattr(run, name) for name in Run.__slots__}


@pytest.mark.parametrize(
    ("before", "refused", "tokens"),
    [
        (None, {}, ["room's"]),
        ({"url": "http://room", "token": "old"}, {}, ["old"]),
        ({"url": "http://elsewhere", "token": "old"}, {}, ["room's"]),
        ({"url": "http://room", "token": "old"}, {"old": Unauthenticated("no")}, ["old", "room's"]),
        ({"url": "http://room", "token": "old"}, {"old": NotFound("no")}, ["old", "room's"]),
    ],
)
def test_whose_token_joins(
    tmp_path: Path, room: Room, before: dict[str, Any] | None, refused: dict[str, CspError], tokens: list[str]
) -> None:
    FakeGateway.refused = refused
    joined = join(order(tmp_path, role="orchestrator"), room, before)

    assert joined == ("ada-2", "agent's")
    assert [token for _, token, _, _ in FakeGateway.calls] == tokens
    assert FakeGateway.calls[-1][3] == {
        "agentId": "ada", "kind": "cli", "role": "orchestrator", "capabilities": ["generic"],
    }  # fmt: skip


def test_a_room_that_refuses_is_not_asked_by_another_token(tmp_path: Path, room: Room) -> None:
    FakeGateway.refused = {"old": Refused("the name is taken")}
    with pytest.raises(Refused, match="taken"):
        join(order(tmp_path), room, {"url": "http://room", "token": "old"})


def test_an_agent_that_could_not_be_started_is_offline_at_once(tmp_path: Path, room: Room) -> None:
    with (
        mock.patch.object(module, "start_child", side_effect=OSError(8, "Exec format error")),
        mock.patch.object(module, "mend"),
        mock.patch.object(module, "unwire") as unwired,
        pytest.raises(Broken, match=r"cannot start '/bin/true': exec format error"),
    ):
        launch(order(tmp_path), room)

    assert FakeGateway.calls[-1] == ("http://room", "agent's", "/state", {"state": "offline"})
    assert unwired.call_count == 2


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, room: Room) -> None:
    with (
        mock.patch.object(module, "make_private_dir", side_effect=OSError(28, "No space left on device")),
        pytest.raises(Broken, match=r"cannot write to .*ada-2: no space left on device"),
    ):
        launch(order(tmp_path), room)

    assert FakeGateway.calls[-1][2:] == ("/state", {"state": "offline"})


def test_a_room_that_does_not_hear_a_farewell_does_no_harm() -> None:
    FakeGateway.refused = {"t": CspError("gone")}
    leave("http://room", "t")

    assert FakeGateway.calls == [("http://room", "t", "/state", {"state": "offline"})]


def test_the_child_is_the_agent_not_the_rooms_owner(tmp_path: Path) -> None:
    (tmp_path / "csp").touch(0o755)
    ours = {"CSP_AUTH_TOKEN": "room's", "CSP_ROOM": "r", "CSP_HISTORY_DIR": "h", "CSP_TRANSCRIPT": "t"}
    env = child_env({"PATH": str(tmp_path), "HOME": "/h", **ours}, "http://room", "ada", "agent's")

    assert env == {
        "PATH": str(tmp_path), "HOME": "/h",
        "CSP_AUTH_TOKEN": "agent's", "CSP_AGENT": "ada", "CSP_GATEWAY_URL": "http://room",
    }  # fmt: skip


def test_a_child_without_our_command_on_its_path_gets_it_last() -> None:
    env = child_env({"PATH": "/nowhere"}, "http://room", "ada", "t")

    assert env["PATH"].split(":")[0] == "/nowhere"
    assert len(env["PATH"].split(":")) == 2


def test_a_command_is_found_as_a_shell_would(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tool").touch(0o755)
    (tmp_path / "bin" / "data").touch(0o644)
    (tmp_path / "bin" / "folder").mkdir()
    env = {"PATH": f"/nowhere:{tmp_path / 'bin'}"}

    assert find_command("tool", env, "/") == str(tmp_path / "bin" / "tool")
    for missing in ("data", "folder", "none"):
        with pytest.raises(NotFound, match="was not found") as caught:
            find_command(missing, env, "/")
        assert "spelling" in caught.value.hint
    with pytest.raises(NotFound) as caught:
        find_command("/none", env, "/")
    assert caught.value.hint == "check the path"


def test_a_session_is_a_random_uuid() -> None:
    found = {new_session() for _ in range(50)}

    assert len(found) == 50
    assert {(uuid.UUID(one).version, uuid.UUID(one).variant) for one in found} == {(4, uuid.RFC_4122)}


def test_worktrees_are_named_only_for_a_room_of_this_machine(tmp_path: Path, room: Room) -> None:
    for running, expected in (
        (None, ""),
        ({"url": "http://elsewhere", "history": str(tmp_path)}, ""),
        ({"url": "http://room"}, ""),
        ({"url": "http://room", "history": str(tmp_path)}, str(tmp_path / "worktrees")),
    ):
        with mock.patch.object(module, "read_running", return_value=running):
            assert module._worktrees(room) == expected
    assert (tmp_path / "worktrees").is_dir()


def test_only_a_cli_that_knows_mcp_gets_the_server_and_only_if_it_is_installed(tmp_path: Path) -> None:
    claude = order(tmp_path, profile=Chosen(name="claude", capture="claude", source=""))
    with mock.patch.object(module, "is_installed", return_value=True):
        assert module._server(claude)[1:] == ["-P", "-m", "csp.cli", "mcp"]
        assert module._server(order(tmp_path)) == []
    with mock.patch.object(module, "is_installed", return_value=False):
        assert module._server(claude) == []
