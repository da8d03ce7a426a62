"""What csp doctor finds on a machine."""

import curses
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest

from csp.cli import doctor
from csp.cli.doctor import check_machine
from csp.cli.verb_call import VerbCall
from csp.clis import version_check
from csp.config import Settings, load_settings
from csp.errors import Unreachable
from csp.room_registry import RunningRoom
from tests.cli.live import Place
from tests.cli.recording import Recorded, call_of, with_settings
from tests.clis.install import BIN, node_path

HELP = "  --settings FILE\\n  --session-id ID\\n  --append-system-prompt TEXT\\n"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    place.close()


def program(place: Place, name: str, script: str) -> str:
    """Put a program on the PATH; return that PATH, on which there is no other agent CLI."""
    folder = place.home / "bin"
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return os.pathsep.join([str(folder), os.environ["PATH"]])


def findings(place: Place, **env: str) -> dict[str, dict[str, Any]]:
    values = {name: value for name, value in place.env(**env).items() if value}
    settings = load_settings(env=values, cwd=place.home, ask=lambda _: True)
    return {finding.check: finding._asdict() for finding in check_machine(settings, values, place.home)}


def test_a_machine_is_checked_by_the_command(place: Place) -> None:
    done = place.csp("doctor", "--json")

    assert done.code == 0, done.err
    assert {row["check"]: row for row in done.json} == findings(place)


def test_a_bare_machine_is_fine_and_is_told_how_to_get_agents(place: Place) -> None:
    found = findings(place)

    assert list(found) == [
        "python",
        "tmux",
        "package",
        "terminal",
        "state folder",
        "history",
        "port",
        "rooms",
        "cli claude",
        "cli codex",
        "cli gemini",
    ]
    assert all(row["ok"] for row in found.values())
    assert found["cli codex"]["advice"] == (
        "npm install -g @openai/codex; CSP_CODEX_CMD=PATH says where it is; or continue without it"
    )


def test_a_state_folder_that_cannot_be_made_is_told(place: Place) -> None:
    blocker = place.home / "blocker"
    blocker.write_text("a file where a folder is needed")
    found = findings(place, XDG_CACHE_HOME=str(blocker), XDG_RUNTIME_DIR="")["state folder"]

    assert (found["ok"], found["detail"]) == (False, f"{blocker}/csp: {blocker} cannot be written")
    assert found["advice"] == "set XDG_CACHE_HOME to a folder of yours"


def test_a_machine_without_tmux_is_told_how_to_get_it(place: Place) -> None:
    path = program(place, "ps", "exit 0").partition(os.pathsep)[0]
    found = findings(place, PATH=path)["tmux"]

    assert (found["ok"], found["detail"]) == (False, "tmux was not found")
    assert found["advice"].startswith("install it: apt install tmux")


def test_an_old_tmux_is_named(place: Place) -> None:
    found = findings(place, PATH=program(place, "tmux", "echo tmux 2.8"))["tmux"]

    assert (found["ok"], found["detail"]) == (False, "tmux 2.8 is too old, expected tmux 3.2 or newer")


def test_a_cli_that_fits_its_profile_passes_every_check(place: Place) -> None:
    script = f"case $1 in --version) echo '2.1.5 (Claude Code)';; --help) printf '{HELP}';; esac"
    found = findings(place, PATH=program(place, "claude", script))

    rows = [found[f"{check} claude"] for check in ("cli", "profile", "wiring", "hooks", "transcripts")]
    assert [row["ok"] for row in rows] == [True] * 5, rows
    assert rows[1]["detail"] == "2.1.5 (Claude Code), tested"
    assert rows[2]["detail"] == (
        "its --help knows what we add: --append-system-prompt, --session-id, --settings"
    )
    assert "first message" in rows[3]["detail"]


def test_a_cli_without_an_option_of_ours_fails(place: Place) -> None:
    script = "case $1 in --version) echo '2.1.5 (Claude Code)';; --help) echo '  --settings FILE';; esac"
    done = place.csp("doctor", PATH=program(place, "claude", script))
    (line,) = [line for line in done.out.splitlines() if line.startswith("FAIL")]

    assert done.code == 1
    assert line.startswith(
        "FAIL  wiring claude: its --help does not know --append-system-prompt, --session-id, which we start"
    )


def test_claude_is_found_in_its_own_install(place: Place) -> None:
    script = f"case $1 in --version) echo '2.1.5 (Claude Code)';; --help) printf '{HELP}';; esac"
    program(place, "claude", script)
    local = place.home / ".claude" / "local"
    local.mkdir(parents=True)
    (place.home / "bin" / "claude").rename(local / "claude")
    found = findings(place)

    assert (found["cli claude"]["ok"], found["cli claude"]["detail"]) == (
        True,
        f"{local}/claude, 2.1.5 (Claude Code)",
    )
    assert found["wiring claude"]["ok"] is True


def test_a_version_nobody_has_tested_is_no_failure(place: Place) -> None:
    script = f"case $1 in --version) echo '9.0.0 (Claude Code)';; --help) printf '{HELP}';; esac"
    found = findings(place, PATH=program(place, "claude", script))["profile claude"]

    assert found["ok"] is True
    assert "claude 9.0.0 (Claude Code), but its profile was tested with" in found["detail"]
    assert found["advice"]


def test_agents_of_csp_toml_are_needed(place: Place) -> None:
    (place.home / "csp.toml").write_text('[[agent]]\nname = "mine"\ncommand = "no-such-cli -x"\n')
    found = findings(place)

    assert [check for check in found if check.startswith("cli ")] == ["cli mine"]
    assert (found["cli mine"]["ok"], found["cli mine"]["detail"]) == (False, "no-such-cli is not installed")


def test_a_variable_that_names_no_command_is_a_fault(place: Place) -> None:
    found = findings(place, CSP_CODEX_CMD="no-such-cli --fast")["cli codex"]

    assert (found["ok"], found["detail"]) == (False, "CSP_CODEX_CMD: no-such-cli was not found")
    assert found["advice"] == "check its spelling, or unset CSP_CODEX_CMD"


def test_another_package_with_our_import_name_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert doctor.check_package().ok
    info = tmp_path / "csp-0.15.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: csp\nVersion: 0.15.0\n")
    (info / "top_level.txt").write_text("csp\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = doctor.check_package()

    assert not found.ok
    assert found.detail == "csp 0.15.0 is installed here too, and its import name is csp"
    assert found.advice.endswith("uv tool install csp-groupchat")


def test_an_unknown_terminal_is_found(place: Place) -> None:
    env = place.env(TERM="no-such-terminal")
    child = pexpect.spawn(
        sys.executable, ["-m", "csp.cli", "doctor"], cwd=place.home, env=env, encoding="utf-8"
    )
    child.expect("FAIL  terminal: 'no-such-terminal' is not known on this machine")
    child.close(force=True)


def test_a_cli_that_never_answers_is_given_up(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.clis.version_check.TIMEOUT_S", 0.2)
    found = findings(place, PATH=program(place, "claude", "exec sleep 60"))

    assert (found["profile claude"]["ok"], found["wiring claude"]["ok"]) == (False, False)
    assert found["wiring claude"]["detail"] == "--help did not end within 0.2 s"
    assert found["wiring claude"]["advice"].endswith("/bin/claude --help by hand")


def test_a_cli_is_given_up_only_when_it_hangs() -> None:
    """A start of two seconds takes more than thirty on a machine with twenty others at work."""
    assert version_check.TIMEOUT_S >= 120


def running(room: str = "den", port: int = 9, **fields: Any) -> RunningRoom:
    place = Path("/nowhere")
    own: dict[str, Any] = {"token": "t", "pid": 1, "dir": place, "history": place / room, "started": 0.0}
    return RunningRoom(room=room, url=f"http://127.0.0.1:{port}", **own | fields)


@pytest.mark.parametrize(("mode", "ok"), [(0o700, True), (0o750, False), (0o701, False)])
def test_a_state_folder_is_for_its_user_alone(tmp_path: Path, mode: int, ok: bool) -> None:
    tmp_path.chmod(mode)
    found = doctor.check_state(tmp_path)

    assert (found.ok, found.advice) == (ok, "" if ok else f"chmod 700 {tmp_path}")


def test_a_folder_that_can_only_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, how: how == os.R_OK)

    assert doctor.check_folder("history", tmp_path, "").ok is False


@pytest.mark.parametrize(
    ("env", "ok", "shown"),
    [
        ({"LANG": "C.UTF-8"}, True, "C.UTF-8"),
        ({"LANG": "en_US.utf8", "LC_ALL": "C"}, False, "locale C is not UTF-8"),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, True, "C.UTF-8"),
        ({}, False, "locale C is not UTF-8"),
    ],
)
@pytest.mark.parametrize("inside", [{}, {"TMUX": "/tmp/socket,1,0"}])
def test_a_terminal_is_checked_inside_tmux_too(
    env: dict[str, str], ok: bool, shown: str, inside: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    described: list[str] = []
    monkeypatch.setattr(doctor, "is_terminal", lambda stream: True)
    monkeypatch.setattr(curses, "setupterm", described.append)
    monkeypatch.setattr(curses, "tigetstr", lambda name: b"x")
    monkeypatch.setattr(curses, "tigetnum", lambda name: {"screen": 8}[described[-1]])
    found = doctor.check_drawing({"TERM": "screen", **env, **inside})

    assert (found.ok, found.detail.endswith(shown)) == (ok, True), found
    assert ("8 colours" in found.detail) == ok


def test_a_terminal_inside_tmux_that_nobody_knows_has_no_count_of_colours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(name: str) -> None:
        raise curses.error(name)

    monkeypatch.setattr(doctor, "is_terminal", lambda stream: True)
    monkeypatch.setattr(curses, "setupterm", unknown)
    found = doctor.check_drawing({"TERM": "no-such-terminal", "LANG": "C.UTF-8", "TMUX": "/tmp/x,1,0"})

    assert found.ok and "unknown colours" in found.detail


def test_a_port_that_is_taken_is_a_fault_only_where_it_was_chosen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = Settings(host="127.0.0.1", port=port)
        chosen = load_settings(env={"CSP_PORT": str(port)}, cwd=Path("/"))
        by_itself = doctor.check_port(settings, [])
        by_us = doctor.check_port(chosen, [running(port=1), running("own", port)])
        by_others = doctor.check_port(chosen, [running(port=1)])

    assert (by_itself.ok, by_itself.detail.endswith("; a gateway takes the next free one")) == (True, True)
    assert (by_us.ok, by_us.detail) == (True, f"127.0.0.1:{port} is used by room own")
    assert (by_others.ok, by_others.advice) == (False, "choose another with CSP_PORT, or unset it")


@pytest.mark.parametrize(
    ("health", "supervisor", "ok", "detail"),
    [
        ({"status": "ok"}, None, True, "ok at http://127.0.0.1:9"),
        ({"status": "ok"}, 2**22 + 1, False, "its supervisor is gone, nobody would start it again"),
        (Unreachable("no answer"), None, False, "no answer"),
    ],
)
def test_a_room_answers_and_has_its_supervisor(
    health: Any, supervisor: int | None, ok: bool, detail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "GatewayClient", lambda url, token: Recorded({"/health": health}))
    found = doctor.check_room(running(supervisor=supervisor))

    assert (found.check, found.ok, found.detail) == ("room den", ok, detail)


@pytest.mark.parametrize("flags", [[], ["--json"]])
@pytest.mark.parametrize(("text", "code"), [("", 0), ("damaged\n", 1)])
def test_a_damaged_journal_is_a_failure(tmp_path: Path, flags: list[str], text: str, code: int) -> None:
    (tmp_path / "default").mkdir()
    (tmp_path / "default" / "journal.jsonl").write_text(text)
    sources = {"history_dir": "--history"}
    call = with_settings(call_of("doctor", "--journal", *flags), history_dir=tmp_path, sources=sources)

    assert doctor.doctor(call) == code


def test_the_journal_of_a_running_room_is_looked_for_where_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that was given goes with the name that was given, whichever room runs."""
    own, given = tmp_path / "own", tmp_path / "given"
    for folder in (own, given / "default"):
        folder.mkdir(parents=True)
        (folder / "journal.jsonl").touch()
    monkeypatch.setattr(doctor, "running_rooms", lambda state_dir: [running("default", history=own)])
    monkeypatch.setattr(VerbCall, "room_name", lambda call: "default")
    call = with_settings(call_of("doctor"), history_dir=given)
    chosen = with_settings(call, sources={"history_dir": "--history"})
    assert doctor.journal_path(call) == own / "journal.jsonl"
    monkeypatch.setattr(VerbCall, "room_name", lambda call: "other")

    assert doctor.journal_path(chosen) == given / "default" / "journal.jsonl"


@pytest.mark.timeout(900)
def test_the_real_clis_know_what_we_add(place: Place) -> None:
    found = findings(place, PATH=os.pathsep.join([str(BIN), node_path()]))

    bad = {check: row for check, row in found.items() if not row["ok"]}
    assert bad == {}
    for name in ("claude", "codex", "gemini"):
        assert found[f"profile {name}"]["detail"].endswith(", tested"), found[f"profile {name}"]
        assert found[f"wiring {name}"]["detail"].startswith("its --help knows what we add: -")
