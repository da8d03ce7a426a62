"""What a launcher leaves behind for the brain, how it joins the room, what it undoes where it fails."""

import json
import os
import uuid
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest

from csp.clis.wiring import wire
from csp.errors import Broken, CspError, Forbidden, NotFound, Refused, Unauthenticated
from csp.sidecar import launch as module
from csp.sidecar.launch import (
    ChosenProfile,
    LaunchOrder,
    RoomAddress,
    child_env,
    find_command,
    join,
    launch,
    leave,
    new_session,
    rules_text,
)
from csp.sidecar.run_record import SidecarRecord


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
    monkeypatch.setattr(module, "GatewayClient", FakeGateway)


@pytest.fixture
def room(tmp_path: Path) -> RoomAddress:
    return RoomAddress(url="http://room", token="room's", name="default", state_dir=str(tmp_path / "state"))


def order(tmp_path: Path, **fields: Any) -> LaunchOrder:
    profile = ChosenProfile(name="generic", capture="screen", source="/profiles/generic.toml")
    known: dict[str, Any] = {
        "name": "ada", "role": "agent", "command": ["/bin/true", "-x"], "profile": profile,
        "cwd": str(tmp_path), "env": {"PATH": "/bin", "CSP_ROOM": "default", "KEPT": "yes"},
    }  # fmt: skip
    return LaunchOrder(**(known | fields))


def launched(wanted: LaunchOrder, room: RoomAddress) -> tuple[SidecarRecord, Any]:
    """Launch up to the point where the relay would begin; return the record and the relay's plan."""
    with (
        mock.patch.object(module, "start_child", return_value=(4321, 99)),
        mock.patch.object(module, "open_life", return_value=(-1, -1)),
        mock.patch.object(module, "repair"),
        mock.patch.object(module, "exec_relay") as relayed,
    ):
        launch(wanted, room)
    run = SidecarRecord.load(Path(room.state_dir) / "default.agents" / "ada-2")
    assert run is not None
    return run, relayed.call_args.args


def test_the_record_has_all_that_was_asked_for(tmp_path: Path, room: RoomAddress) -> None:
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


def test_the_prompt_of_a_cli_comes_with_the_rules_or_is_typed_in(tmp_path: Path, room: RoomAddress) -> None:
    run, _ = launched(order(tmp_path, prompt="Find mistakes.", initial_prompt="begin", duty="reviewer"), room)

    assert (run.initial_prompt, run.duty) == ("Find mistakes.\n\nbegin", "reviewer")
    assert FakeGateway.calls[0][3]["capabilities"] == {"profile": "generic", "duty": "reviewer"}
    profile = ChosenProfile(name="claude", capture="claude", source="/profiles/claude.toml")
    run, _ = launched(order(tmp_path, prompt="Find mistakes.", profile=profile), room)

    assert run.initial_prompt == ""
    assert "Find mistakes." in run.argv[run.argv.index("--append-system-prompt") + 1]
    assert FakeGateway.calls[-1][3]["capabilities"] == ["claude"]


def test_a_message_waits_ten_seconds_if_nothing_else_is_said(tmp_path: Path, room: RoomAddress) -> None:
    run, _ = launched(order(tmp_path), room)

    assert (run.injection_timeout_s, run.allow_shell, run.initial_prompt) == (10.0, False, "")


def test_the_token_of_the_agent_lies_where_its_commands_find_it(tmp_path: Path, room: RoomAddress) -> None:
    launched(order(tmp_path), room)
    token = Path(room.state_dir) / "default.agents" / "ada-2.token"

    assert token.read_text() == "agent's"
    assert token.stat().st_mode & 0o777 == 0o600
    assert token.parent.stat().st_mode & 0o777 == 0o700


def test_a_name_that_was_left_behind_is_had_again_with_its_transcripts(
    tmp_path: Path, room: RoomAddress
) -> None:
    run, _ = launched(order(tmp_path), room)
    SidecarRecord(**{**vars_of(run), "pid": 2**22 + 1, "transcripts": ["/t.jsonl"]}).save(Path(run.folder))
    FakeGateway.calls.clear()
    again, _ = launched(order(tmp_path), room)

    assert [(token, path) for _, token, path, _ in FakeGateway.calls] == [("agent's", "/register")]
    assert again.earlier == ["/t.jsonl"]


def vars_of(run: SidecarRecord) -> dict[str, Any]:
    return msgspec.structs.asdict(run)


@pytest.mark.parametrize(
    ("before", "refused", "tokens"),
    [
        (None, {}, ["room's"]),
        ({"url": "http://room", "token": "old"}, {}, ["old"]),
        ({"url": "http://elsewhere", "token": "old"}, {}, ["room's"]),
        ({"url": "http://room", "token": "old"}, {"old": Unauthenticated("no")}, ["old", "room's"]),
        ({"url": "http://room", "token": "old"}, {"old": NotFound("no")}, ["old", "room's"]),
        ({"url": "http://room", "token": "old"}, {"old": Forbidden("no")}, ["old", "room's"]),
    ],
)
def test_whose_token_joins(
    tmp_path: Path,
    room: RoomAddress,
    before: dict[str, Any] | None,
    refused: dict[str, CspError],
    tokens: list[str],
) -> None:
    FakeGateway.refused = refused
    joined = join(order(tmp_path, role="orchestrator"), room, before, "start-1")

    assert joined == ("ada-2", "agent's")
    assert [token for _, token, _, _ in FakeGateway.calls] == tokens
    assert FakeGateway.calls[-1][3] == {
        "agentId": "ada", "kind": "cli", "role": "orchestrator", "capabilities": ["generic"],
        "launch": "start-1",
    }  # fmt: skip


def test_a_room_that_refuses_is_not_asked_by_another_token(tmp_path: Path, room: RoomAddress) -> None:
    FakeGateway.refused = {"old": Refused("the name is taken")}
    with pytest.raises(Refused, match="taken"):
        join(order(tmp_path), room, {"url": "http://room", "token": "old"}, "start-1")


def joining(room: RoomAddress) -> list[str]:
    """Return the notes of those who are about to join."""
    return [path.name for path in Path(room.state_dir, "default.agents").glob(".joining-*")]


def test_who_was_killed_after_it_had_joined_hands_its_launch_to_the_next(
    tmp_path: Path, room: RoomAddress
) -> None:
    with (
        mock.patch.object(module, "save_token", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        launch(order(tmp_path), room)
    (note,) = Path(room.state_dir, "default.agents").glob(".joining-*")
    record = json.loads((note / "run.json").read_text()) | {"pid": 2**22 + 1}
    (note / "run.json").write_text(json.dumps(record))
    note.rename(note.with_name(".joining-dead"))
    launched(order(tmp_path), room)

    first, second = (body["launch"] for _, _, path, body in FakeGateway.calls if path == "/register")
    assert first == second == record["launch"]
    assert joining(room) == []


def test_each_launch_has_an_id_of_its_own(tmp_path: Path, room: RoomAddress) -> None:
    launched(order(tmp_path), room)
    launched(order(tmp_path), room)

    first, second = (body["launch"] for _, _, _, body in FakeGateway.calls)
    assert first != second and first and second


def test_who_could_not_join_leaves_no_note(tmp_path: Path, room: RoomAddress) -> None:
    FakeGateway.refused = {"room's": Refused("the room is full")}
    with pytest.raises(Refused, match="full"):
        launch(order(tmp_path), room)

    assert joining(room) == []


def test_an_agent_that_could_not_be_started_is_offline_at_once(tmp_path: Path, room: RoomAddress) -> None:
    with (
        mock.patch.object(module, "start_child", side_effect=OSError(8, "Exec format error")),
        mock.patch.object(module, "repair"),
        mock.patch.object(module, "unwire") as unwired,
        pytest.raises(Broken, match=r"cannot start '/bin/true': exec format error"),
    ):
        launch(order(tmp_path), room)

    assert FakeGateway.calls[-1] == ("http://room", "agent's", "/state", {"state": "offline"})
    assert unwired.call_count == 2


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, room: RoomAddress) -> None:
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


def test_worktrees_are_named_only_for_a_room_of_this_machine(tmp_path: Path, room: RoomAddress) -> None:
    for running, expected in (
        (None, ""),
        ({"url": "http://elsewhere", "history": str(tmp_path)}, ""),
        ({"url": "http://room"}, ""),
        ({"url": "http://room", "history": str(tmp_path)}, str(tmp_path / "worktrees")),
    ):
        with mock.patch.object(module, "read_running", return_value=running):
            assert module._worktrees(room) == expected
    assert (tmp_path / "worktrees").is_dir()


# --- how the CLI is started ----------------------------------------------------------------------


def claude(tmp_path: Path, **fields: Any) -> LaunchOrder:
    profile = ChosenProfile(name="claude", capture="claude", source="/profiles/claude.toml")
    return order(tmp_path, profile=profile, **fields)


def test_a_cli_is_wired_with_all_that_the_room_has_for_it(tmp_path: Path, room: RoomAddress) -> None:
    with (
        mock.patch.object(module, "_worktrees", return_value="/worktrees"),
        mock.patch.object(module, "wire", wraps=wire) as wired,
    ):
        run, (plan, _, _) = launched(claude(tmp_path, role="orchestrator"), room)
    kind, given = wired.call_args.args

    assert (kind, given.folder, given.argv) == ("claude", run.folder, ["/bin/true", "-x"])
    own = (given.env["CSP_AGENT"], given.env["CSP_AUTH_TOKEN"], given.env["KEPT"])
    assert own == ("ada-2", "agent's", "yes")
    assert given.rules == rules_text("ada-2", "orchestrator", has_tools=True).strip()
    assert given.cwd == str(tmp_path)
    assert given.worktrees == "/worktrees"
    assert given.server[-1] == run.folder
    assert run.session_id == given.session_id
    assert Path(run.transcript).name == f"{given.session_id}.jsonl"
    assert run.spool == str(Path(run.folder) / "spool")
    assert (plan.argv, plan.env) == (run.argv, run.env)


@pytest.mark.parametrize(("capture", "has_server"), [("claude", True), ("screen", False)])
def test_only_a_cli_that_knows_mcp_gets_the_server(
    tmp_path: Path, room: RoomAddress, capture: str, has_server: bool
) -> None:
    profile = ChosenProfile(name="some", capture=capture, source="/profiles/some.toml")
    with mock.patch.object(module, "wire", wraps=wire) as wired:
        launched(order(tmp_path, profile=profile), room)

    assert bool(wired.call_args.args[1].server) == has_server


def test_the_rules_say_nothing_of_tools_that_are_not_there(tmp_path: Path, room: RoomAddress) -> None:
    profile = ChosenProfile(name="some", capture="screen", source="/profiles/some.toml")
    with mock.patch.object(module, "wire", wraps=wire) as wired:
        launched(order(tmp_path, profile=profile), room)

    given = wired.call_args.args[1]
    assert given.rules == rules_text("ada-2", "agent").strip()
    assert given.server == []


def test_what_a_dead_run_has_left_is_put_away_before_the_next_is_wired(
    tmp_path: Path, room: RoomAddress
) -> None:
    steps = mock.Mock()
    steps.wire.side_effect = wire
    steps.start.return_value = (24, 80)
    with (
        mock.patch.object(module, "unwire", steps.unwire),
        mock.patch.object(module, "wire", steps.wire),
        # Asked right before the child is started.
        mock.patch.object(module, "terminal_size", steps.start),
    ):
        launched(order(tmp_path), room)

    assert [call[0] for call in steps.mock_calls] == ["unwire", "wire", "start"]
    steps.unwire.assert_called_once_with(str(Path(room.state_dir) / "default.agents" / "ada-2"))


@pytest.mark.parametrize("is_light", [True, False])
def test_the_child_has_the_persons_terminal_and_can_be_stopped_while_the_relay_lives(
    tmp_path: Path, room: RoomAddress, is_light: bool
) -> None:
    life, end = os.pipe()
    with (
        mock.patch.object(module, "start_child", return_value=(4321, 99)) as started,
        mock.patch.object(module, "open_life", return_value=(life, end)),
        mock.patch.object(module, "repair") as mended,
        mock.patch.object(module, "terminal_size", return_value=(33, 77)),
        mock.patch.object(module, "exec_relay") as relayed,
        mock.patch("csp.sidecar.relay.relay_loop.relay", return_value=5) as relay,
        mock.patch.object(os, "_exit", side_effect=SystemExit) as exited,
    ):
        try:
            launch(order(tmp_path), room, is_light=is_light)
        except SystemExit:
            assert is_light
    mended.assert_called_once_with(0, f"{room.state_dir}/terminals")
    argv, env, *place = started.call_args.args

    assert (argv, env["CSP_AGENT"], place) == (["/bin/true", "-x"], "ada-2", [str(tmp_path), 33, 77])
    assert started.call_args.kwargs == {"like": 0, "life": life}
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(life)
    plan = (relay if is_light else relayed).call_args.args[0]
    assert plan.life == end
    assert exited.call_args_list == [mock.call(5)] * is_light
    os.close(end)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({0: (80, 24), 1: (1, 1)}, (24, 80)),
        ({1: (90, 30)}, (30, 90)),
        ({2: (90, 30)}, (30, 90)),
        ({0: (0, 0), 2: (90, 30)}, (30, 90)),
        ({0: (0, 24)}, (24, 80)),
        ({}, (24, 80)),
    ],
)
def test_the_size_is_that_of_the_first_terminal_that_has_one(
    sizes: dict[int, tuple[int, int]], expected: tuple[int, int]
) -> None:
    def size(fd: int) -> os.terminal_size:
        if fd not in sizes:
            raise OSError(25, "no terminal")
        return os.terminal_size(sizes[fd])

    with mock.patch.object(os, "get_terminal_size", size):
        assert module.terminal_size() == expected
