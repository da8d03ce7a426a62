"""Finding the room a command means."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from csp import room_registry as rooms_module
from csp.config import Settings
from csp.errors import BadInput, Broken, CspError, Refused, Unauthenticated, Unreachable
from csp.fast_start import room_files
from csp.project import Project
from csp.room_registry import (
    NO_ROOM,
    RunningRoom,
    find_room,
    remove_room,
    running_rooms,
    write_room,
)
from tests.rooms import save_agent_token


def room(name: str, folder: str = "/elsewhere", port: int = 1) -> RunningRoom:
    return RunningRoom(
        room=name,
        url=f"http://127.0.0.1:{port}",
        token=f"token-{name}",
        pid=os.getpid(),
        dir=Path(folder),
        history=Path("/history"),
        started=1.5,
    )


def settings(state: Path, room_from: str = "default", **values: str) -> Settings:
    return replace(Settings(), state_dir=state, sources={"room": room_from}, **values)  # type: ignore[arg-type]  # all are texts


def test_a_running_room_is_found_with_all_it_said(tmp_path: Path) -> None:
    held = write_room(tmp_path / "state", room("one"))
    found = running_rooms(tmp_path / "state")
    remove_room(held)

    assert found == [room("one")]
    assert running_rooms(tmp_path / "state") == []


def test_only_the_user_can_read_the_token(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o755)
    held = write_room(state, room("one"))
    modes = (state.stat().st_mode & 0o777, held.path.stat().st_mode & 0o777)
    remove_room(held)

    assert modes == (0o700, 0o600)


def test_what_a_room_of_before_left_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text("x" * 5000)
    (tmp_path / "one.json").chmod(0o644)
    held = write_room(tmp_path, room("one"))
    found, mode = running_rooms(tmp_path), held.path.stat().st_mode & 0o777
    remove_room(held)

    assert (found, mode) == ([room("one")], 0o600)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "somewhere").write_text("not ours")
    (tmp_path / "one.json").symlink_to(tmp_path / "somewhere")
    with pytest.raises(Broken, match="cannot write"):
        write_room(tmp_path, room("one"))

    assert (tmp_path / "somewhere").read_text() == "not ours"


def test_a_file_that_was_removed_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []

    def lock(fd: int, kind: int) -> bool:
        # Another command has found nobody's lock on it, so it was taken for a leftover.
        if not tries:
            (tmp_path / "one.json").unlink()
        tries.append(fd)
        return room_files.lock(fd, kind)

    monkeypatch.setattr(rooms_module, "lock", lock)
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    held = write_room(tmp_path, room("one"))
    after = len(os.listdir("/proc/self/fd")) if before else 1
    found = running_rooms(tmp_path)
    remove_room(held)

    assert (len(tries), found) == (2, [room("one")])
    # The file that is nobody's is not kept open.
    assert after == before + 1


def test_a_second_room_of_the_same_name_is_refused(tmp_path: Path) -> None:
    held = write_room(tmp_path, room("one"))
    with pytest.raises(Refused) as caught:
        write_room(tmp_path, room("one", port=2))
    found = running_rooms(tmp_path)
    remove_room(held)

    assert caught.value.message == "room 'one' is already running"
    assert found == [room("one")]


def test_a_killed_gateway_leaves_no_room_behind(tmp_path: Path) -> None:
    code = (
        "import sys, os, signal\nfrom pathlib import Path\n"
        "from csp.room_registry import RunningRoom, write_room\n"
        "write_room(Path(sys.argv[1]), RunningRoom(room='one', url='http://x', token='t', pid=os.getpid(),"
        " dir=Path('/'), history=Path('/'), started=1.0))\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    was_there = (tmp_path / "one.json").exists()

    assert was_there
    assert running_rooms(tmp_path) == []
    assert not (tmp_path / "one.json").exists()


def test_the_pid_of_a_stranger_does_not_keep_a_room_alive(tmp_path: Path) -> None:
    values = {"room": "one", "url": "http://x", "token": "t", "pid": os.getpid(), "started": 1.0}
    (tmp_path / "one.json").write_text(json.dumps(values | {"supervisor": None, "dir": "/", "history": "/"}))
    held = write_room(tmp_path, room("one"))
    remove_room(held)

    assert running_rooms(tmp_path) == []


def test_a_room_between_two_starts_belongs_to_its_supervisor(tmp_path: Path) -> None:
    held = write_room(tmp_path, replace(room("one"), supervisor=os.getpid()))
    os.close(held.fd)

    assert [found.room for found in running_rooms(tmp_path)] == ["one"]


def test_a_file_that_is_no_room_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text("[]")
    (tmp_path / "c.json").symlink_to("a.json")

    assert running_rooms(tmp_path) == []


def test_the_environment_comes_first(tmp_path: Path) -> None:
    held = write_room(tmp_path, room("one", str(tmp_path)))
    found = find_room(settings(tmp_path, gateway_url="http://other:9", auth_token="mine"), tmp_path)
    remove_room(held)

    assert (found.url, found.token) == ("http://other:9", "mine")


def test_the_token_of_the_environment_speaks_in_the_room_that_is_found(tmp_path: Path) -> None:
    held = write_room(tmp_path, room("one", str(tmp_path)))
    found = find_room(settings(tmp_path, auth_token="mine"), tmp_path)
    remove_room(held)

    assert (found.url, found.token) == ("http://127.0.0.1:1", "mine")


def test_an_address_without_a_token_takes_that_of_the_room_there(tmp_path: Path) -> None:
    held = write_room(tmp_path, room("one"))
    found = find_room(settings(tmp_path, gateway_url="http://127.0.0.1:1/"), tmp_path)
    remove_room(held)

    assert found.token == "token-one"


def test_an_address_without_any_token_is_a_misuse(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="CSP_AUTH_TOKEN"):
        find_room(settings(tmp_path, gateway_url="http://127.0.0.1:1"), tmp_path)


def test_in_a_pane_the_token_is_the_agents_own(tmp_path: Path) -> None:
    held = write_room(tmp_path, room("one", str(tmp_path)))
    path = save_agent_token(settings(tmp_path), "one", "codex", "token-codex")
    found = find_room(settings(tmp_path, agent="codex"), tmp_path)
    by_url = find_room(settings(tmp_path, agent="codex", gateway_url="http://127.0.0.1:1"), tmp_path)
    given = find_room(settings(tmp_path, agent="codex", auth_token="mine"), tmp_path)
    remove_room(held)

    assert (found.token, by_url.token, given.token) == ("token-codex", "token-codex", "mine")
    assert path == tmp_path / "one.agents/codex.token"
    assert sorted(file.name for file in path.parent.iterdir()) == ["codex.token"]


def test_in_a_pane_an_address_of_no_known_room_takes_the_token_of_the_named_one(tmp_path: Path) -> None:
    save_agent_token(settings(tmp_path), "far", "codex", "token-codex")
    given = settings(tmp_path, "CSP_ROOM", room="far", agent="codex", gateway_url="http://far:1")

    assert find_room(given, tmp_path).token == "token-codex"


@pytest.mark.parametrize("content", [None, b"", b" \n", b"\xff"])
def test_in_a_pane_without_a_token_nobody_speaks(tmp_path: Path, content: bytes | None) -> None:
    held = write_room(tmp_path, room("one", str(tmp_path)))
    if content is not None:
        save_agent_token(settings(tmp_path), "one", "codex", "x").write_bytes(content)
    errors = [
        failure(settings(tmp_path, agent="codex"), tmp_path),
        failure(settings(tmp_path, agent="codex", gateway_url="http://127.0.0.1:1"), tmp_path),
    ]
    remove_room(held)

    for error in errors:
        assert isinstance(error, Unauthenticated)
        assert "no token of agent 'codex' in room 'one'" in error.message


@pytest.mark.parametrize("agent", ["../one", "a/b", "A", ".", "x" * 33])
def test_the_name_of_an_agent_leads_nowhere_else(tmp_path: Path, agent: str) -> None:
    held = write_room(tmp_path, room("one", str(tmp_path)))
    error = failure(settings(tmp_path, agent=agent), tmp_path)
    remove_room(held)

    assert type(error) is BadInput
    assert "CSP_AGENT" in error.message


def test_a_token_that_cannot_be_left_is_named(tmp_path: Path) -> None:
    (tmp_path / "one.agents").write_text("")
    with pytest.raises(CspError, match="cannot write"):
        save_agent_token(settings(tmp_path), "one", "codex", "x")


def test_a_flag_cannot_take_an_agent_into_another_room(tmp_path: Path) -> None:
    held = [write_room(tmp_path, room("one", port=1)), write_room(tmp_path, room("two", port=2))]
    given = {"gateway_url": "http://127.0.0.1:1", "auth_token": "mine"}
    with pytest.raises(BadInput) as caught:
        find_room(settings(tmp_path, "--room", room="two", **given), tmp_path)
    same = find_room(settings(tmp_path, "--room", room="one", **given), tmp_path)
    for file in held:
        remove_room(file)

    assert caught.value.message == "--room: expected 'one', the room of CSP_GATEWAY_URL, got 'two'"
    assert same.token == "mine"


def test_a_room_is_known_by_any_of_its_gateways(tmp_path: Path) -> None:
    held = write_room(tmp_path, room("one", port=1))
    found = find_room(settings(tmp_path, gateway_url="http://127.0.0.1:9,http://127.0.0.1:1/"), tmp_path)
    remove_room(held)

    assert (found.room, found.token) == ("one", "token-one")
    assert found.url == "http://127.0.0.1:9,http://127.0.0.1:1/"


def test_a_name_is_stronger_than_the_directory(tmp_path: Path) -> None:
    held = [write_room(tmp_path, room("one", str(tmp_path))), write_room(tmp_path, room("two", port=2))]
    found = find_room(settings(tmp_path, "CSP_ROOM", room="two"), tmp_path)
    for file in held:
        remove_room(file)

    assert found.room == "two"


def test_the_nearest_directory_wins(tmp_path: Path) -> None:
    names = {"outer": tmp_path, "inner": tmp_path / "a", "side": tmp_path / "b"}
    held = [write_room(tmp_path / "s", room(name, str(path))) for name, path in names.items()]
    found = [find_room(settings(tmp_path / "s"), tmp_path / at).room for at in ("a/x/y", "a", "b", "c", ".")]
    for file in held:
        remove_room(file)

    assert found == ["inner", "inner", "side", "outer", "outer"]


def test_a_room_of_another_project_is_never_found_by_itself(tmp_path: Path) -> None:
    held = write_room(tmp_path, room("one", "/elsewhere"))
    error = failure(settings(tmp_path), tmp_path)
    remove_room(held)

    assert isinstance(error, Unreachable)
    assert error.message == f"the room of '{tmp_path}' is not running; running elsewhere: one (/elsewhere)"
    assert error.hint == "open it with: csp up; choose another one with --room NAME"


def test_a_stopped_room_hides_that_of_a_directory_above(tmp_path: Path) -> None:
    (inner := tmp_path / "inner").mkdir()
    held = write_room(tmp_path, room("outer", str(tmp_path)))
    own = replace(settings(tmp_path), project=Project(root=inner, identity=str(inner)))
    error = failure(own, inner)
    found = find_room(settings(tmp_path), inner)
    remove_room(held)

    assert isinstance(error, Unreachable)
    assert found.room == "outer"


def test_a_room_of_the_home_directory_is_not_that_of_everything_in_it(tmp_path: Path) -> None:
    (notes := tmp_path / "notes").mkdir()
    held = write_room(tmp_path, replace(room("home", str(tmp_path)), project=str(tmp_path)))
    own = replace(settings(tmp_path), project=Project(root=notes, identity=str(notes)))
    error = failure(own, notes)
    remove_room(held)

    assert isinstance(error, Unreachable)


@pytest.mark.parametrize("is_known", [True, False], ids=["now", "earlier version"])
def test_all_of_a_repository_finds_its_room(tmp_path: Path, is_known: bool) -> None:
    shop = tmp_path / "shop"
    (shop / "src").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", shop], check=True)
    identity = str(shop / ".git") if is_known else ""
    held = write_room(tmp_path, replace(room("shop", str(shop / "src")), project=identity))
    found = [find_room(settings(tmp_path), at).room for at in (shop, shop / "src", shop / ".git")]
    remove_room(held)

    assert found == ["shop"] * 3


def test_a_directory_that_becomes_a_repository_keeps_its_room(tmp_path: Path) -> None:
    held = write_room(tmp_path / "state", replace(room("shop", str(tmp_path)), project=str(tmp_path)))
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    found = find_room(settings(tmp_path / "state"), tmp_path)
    remove_room(held)

    assert found.room == "shop"


def test_of_several_rooms_of_a_project_its_own_is_meant(tmp_path: Path) -> None:
    held = [write_room(tmp_path / "s", room(name, str(tmp_path))) for name in ("shop", "trial")]
    own = find_room(settings(tmp_path / "s", room="shop"), tmp_path)
    remove_room(held.pop(0))
    named = find_room(settings(tmp_path / "s", room="shop"), tmp_path)
    remove_room(held.pop())

    assert (own.room, named.room) == ("shop", "trial")


def failure(given: Settings, cwd: Path) -> CspError:
    with pytest.raises(CspError) as caught:
        find_room(given, cwd)
    return caught.value


def test_no_room_says_how_to_start_one(tmp_path: Path) -> None:
    error = failure(settings(tmp_path), tmp_path)

    assert isinstance(error, Unreachable)
    assert error.message == NO_ROOM


def test_several_named_rooms_of_a_project_are_listed(tmp_path: Path) -> None:
    here = str(tmp_path)
    held = [write_room(tmp_path, room("one", here)), write_room(tmp_path, room("two", here))]
    error = failure(settings(tmp_path), tmp_path)
    for file in held:
        remove_room(file)

    assert error.message == f"several rooms are running here: one ({here}), two ({here})"
    assert error.hint == "choose one with --room"


def test_an_unknown_room_brings_the_nearest(tmp_path: Path) -> None:
    held = write_room(tmp_path, room("review"))
    error = failure(settings(tmp_path, "--room", room="reviw"), tmp_path)
    remove_room(held)

    assert (error.message, error.hint) == ("room 'reviw' is not running", "did you mean 'review'?")


def test_a_state_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CspError) as caught:
        write_room(tmp_path / "file", room("one"))

    assert "cannot write" in caught.value.message
