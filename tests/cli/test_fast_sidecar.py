"""The short way to a sidecar, which must come to the same as the long one."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from csp.cli import fast_command_line, fast_sidecar
from csp.cli.fast_command_line import is_plain
from csp.cli.fast_sidecar import _profile, read_words
from csp.cli.parser import parse
from csp.clis.profile import profile_for
from csp.clis.registry import cli_names
from csp.config import ROWS, Row
from csp.sidecar.launch import LaunchOrder, RoomAddress, find_command, new_session
from tests.bench.machine.scene import Scene, left, state_of

#: What the launcher can do without; each costs a tenth of a bare Python's start or more.
SLOW = {
    *(
        "argparse",
        "asyncio",
        "collections",
        "dataclasses",
        "enum",
        "functools",
        "http.client",
        "inspect",
        "json",
    ),
    *("msgspec", "pathlib", "re", "shlex", "shutil", "socket", "ssl", "subprocess", "tomllib", "typing"),
    *("urllib.parse", "uuid", "csp.config", "csp.room_registry", "csp.sidecar.run_record"),
}


@pytest.mark.parametrize(
    "words",
    [
        ["--name", "claude", "--", "claude"],
        ["--name", "C C", "--role", "orchestrator", "--", "/opt/claude", "--name", "x", "--", "-p"],
        ["--room", "review-2", "--name", "claude", "--profile", "claude", "--", "npx", ""],
    ],
)
def test_plain_words_are_read_as_the_parser_reads_them(words: list[str]) -> None:
    _, args = parse(["sidecar", *words])
    found = read_words(words)

    assert found is not None
    options, command = found
    assert (options["--name"], options.get("--role", "agent")) == (args.name, args.role)
    assert (options.get("--room"), options.get("--profile")) == (args.room, args.profile)
    assert command == args.command


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--help"],
        ["--name", "claude", "claude"],
        ["--name", "claude", "--"],
        ["--", "claude"],
        ["--name", "", "--", "claude"],
        ["--name=claude", "--", "claude"],
        ["--name", "--", "claude"],
        ["--name", "a", "--name", "b", "--", "claude"],
        ["--name", "a", "--role", "boss", "--", "claude"],
        ["--name", "a", "--room", "../x", "--", "claude"],
        ["--name", "a", "--room", "", "--", "claude"],
        ["--name", "a", "--profile-file", "claude", "--", "claude"],
        ["--name", "a", "--verbose", "--", "claude"],
        ["--name", "a", "word", "--", "claude"],
        ["--name", "-a", "--", "claude"],
        ["--name", "a\udcff", "--", "claude"],
    ],
)
def test_other_words_are_left_to_the_parser(words: list[str]) -> None:
    assert read_words(words) is None


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"HOME": "/h"}, True),
        ({"CSP_ROOM": "x", "CSP_AUTH_TOKEN": "t", "CSP_PANES": "x", "CSP_PORT": ""}, True),
        ({"CSP_PORT": "1"}, False),
        ({"CSP_AGENT": "claude"}, False),
        ({"CSP_GATEWAY_URL": "http://x"}, False),
        ({"CSP_CONFIG_FILE": "x"}, False),
        ({"CSP_AUTH_TOKEN": "a\nb"}, False),
    ],
)
def test_settings_in_the_environment_are_left_to_their_table(env: dict[str, str], expected: bool) -> None:
    assert is_plain(env) is expected


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_no_setting_is_overlooked(row: Row) -> None:
    assert is_plain({row.env: "x"}) is (row.name in ("room", "auth_token"))


@pytest.mark.parametrize("name", cli_names())
def test_a_profile_is_the_one_that_its_file_describes(name: str) -> None:
    quick, profile = _profile(name), profile_for(f"/opt/bin/{name}")

    assert quick is not None
    assert (quick.name, quick.capture, quick.source) == (profile.name, profile.capture, profile.source)


@pytest.mark.parametrize("program", ["bash", "npx", "claude.exe", "aider"])
def test_other_programs_are_left_to_their_profiles(program: str) -> None:
    assert _profile(program) is None


def test_the_launcher_loads_next_to_nothing() -> None:
    modules = "csp.cli, csp.cli.fast_sidecar, csp.sidecar.launch, csp.sidecar.relay.relay_loop"
    modules += ", csp.clis.claude.wiring, csp.clis.codex.wiring"
    code = f"import sys, {modules}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    bare = subprocess.run(
        [sys.executable, "-I", "-c", "import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert SLOW & (set(run.stdout.split()) - set(bare.stdout.split())) == set()


def test_a_session_is_a_random_uuid() -> None:
    found = [new_session() for _ in range(50)]

    assert len(set(found)) == 50
    assert all(UUID(text).version == 4 and str(UUID(text)) == text for text in found)


def test_a_command_is_found_as_a_shell_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, mode in (("a", 0o644), ("b", 0o755), ("c", 0o755)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "tool").touch(mode)
    monkeypatch.chdir(tmp_path / "c")
    path = os.pathsep.join(str(tmp_path / folder) for folder in "abc")

    assert find_command("tool", {"PATH": path}, "/") == str(tmp_path / "b/tool")
    assert find_command("./tool", {}, os.getcwd()) == str(tmp_path / "c" / "./tool")


class Machine:
    """Rooms that run, an environment, a directory; and what was launched there."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.env = {"HOME": str(home), "XDG_CACHE_HOME": str(home), "XDG_CONFIG_HOME": str(home / "config")}
        self.state = home / "csp"
        self.state.mkdir()
        self.launched: list[tuple[LaunchOrder, RoomAddress, bool]] = []
        monkeypatch.chdir(home)
        monkeypatch.setattr("csp.fast_start.process_environment.process_environment", lambda: self.env)
        monkeypatch.setattr(
            fast_command_line, "read_running", lambda path: json.loads(Path(path).read_text() or "null")
        )
        monkeypatch.setattr("csp.sidecar.launch.launch", self._launch)

    def _launch(self, order: LaunchOrder, room: RoomAddress, *, is_light: bool = False) -> None:
        self.launched.append((order, room, is_light))

    def announce(self, name: str, **fields: Any) -> None:
        found = {
            "url": f"http://{name}",
            "token": f"of {name}",
            "room": name,
            "project": os.getcwd(),
        } | fields
        (self.state / f"{name}.json").write_text(json.dumps(found))

    def start(self, *words: str) -> tuple[LaunchOrder, RoomAddress, bool] | None:
        """Return what was launched; nothing where the words are left to the long way."""
        self.launched.clear()
        fast_sidecar.start_plain_sidecar(["--name", "a", *words, "--", "claude", "-x"])
        return self.launched[0] if self.launched else None


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_the_room_of_the_directory_is_joined_with_what_was_asked_for(
    machine: Machine, tmp_path: Path
) -> None:
    machine.announce("den")
    found = machine.start("--role", "orchestrator")
    assert found is not None
    order, room, is_light = found

    assert (order.name, order.role, order.profile.name) == ("a", "orchestrator", "claude")
    assert (list(order.command), order.cwd, order.env) == (["claude", "-x"], str(tmp_path), machine.env)
    assert (room.url, room.token, room.name) == ("http://den", "of den", "den")
    assert (room.state_dir, is_light) == (str(machine.state), True)


def test_an_option_comes_before_a_variable_and_a_token_before_that_of_the_room(machine: Machine) -> None:
    for name in ("den", "hall"):
        machine.announce(name)
    machine.env |= {"CSP_ROOM": "den", "CSP_AUTH_TOKEN": "own"}
    by_variable, by_option = machine.start(), machine.start("--room", "hall", "--profile", "codex")
    assert by_variable is not None and by_option is not None

    assert (by_variable[1].name, by_variable[1].token) == ("den", "own")
    assert (by_option[1].name, by_option[0].profile.name) == ("hall", "codex")


@pytest.mark.parametrize(
    "trouble",
    [
        "none",
        "two",
        "elsewhere",
        "no token",
        "odd name",
        "csp.toml",
        "above",
        "config",
        "unreadable",
        "folder",
    ],
)
def test_a_choice_or_a_settings_file_is_left_to_the_long_way(
    machine: Machine, tmp_path: Path, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if trouble != "none":
        machine.announce("den", **{"token": 5} if trouble == "no token" else {})
    if trouble == "two":
        machine.announce("hall")
    elif trouble == "elsewhere":
        machine.announce("den", project="/elsewhere")
    elif trouble == "above":
        (tmp_path / "below").mkdir()
        monkeypatch.chdir(tmp_path / "below")
        machine.announce("den")
        (tmp_path / "csp.toml").touch()
    elif trouble == "odd name":
        (machine.state / "den.json").rename(machine.state / "Den.json")
    elif trouble == "csp.toml":
        (tmp_path / "csp.toml").touch()
    elif trouble == "config":
        (tmp_path / "config" / "csp").mkdir(parents=True)
        (tmp_path / "config" / "csp" / "config.toml").touch()
    elif trouble == "unreadable":
        machine.env["XDG_CONFIG_HOME"] = "/" + "x" * 300
    elif trouble == "folder":
        (gone := tmp_path / "gone").mkdir()
        monkeypatch.chdir(gone)
        gone.rmdir()

    assert machine.start() is None


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with Scene(tmp_path) as it:
        yield it


def _run(scene: Scene) -> tuple[dict[str, Any], list[str]]:
    """Start a sidecar; return its record with the words that the relay was started by."""
    name = scene.new_name()
    with scene.seat(name, [scene.script("claude", "echo STARTED; exec cat"), "--model", "opus"]) as seat:
        scene.ear.wait(state_of(name), [seat.fd])
        record = json.loads(next(scene.folder.glob(f"csp/*.agents/{name}/run.json")).read_text())
        words = Path(f"/proc/{seat.pid}/cmdline").read_text().split("\0")
    scene.ear.wait(left(name))
    return _without_identity(record, name), words


def _without_identity(record: dict[str, Any], name: str) -> dict[str, Any]:
    text = json.dumps({key: value for key, value in record.items() if key not in ("started", "pid")})
    for own in (record["token"], record["session_id"]):
        text = text.replace(own, "OWN")
    found: dict[str, Any] = json.loads(text.replace(name, "NAME"))
    return found


def test_both_ways_leave_the_same_record(scene: Scene) -> None:
    short, short_words = _run(scene)
    (scene.cwd / "csp.toml").write_text("[room]\n")
    long, long_words = _run(scene)

    assert short == long
    # Only what has loaded little goes on as the relay.
    assert "sidecar" in short_words
    assert "csp-sidecar-agent-2" in long_words
