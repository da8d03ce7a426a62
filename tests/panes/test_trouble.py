"""What can go wrong while a room is opened: one clear line, nothing half done."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from csp.room_registry import running_rooms
from tests.panes.place import Place


def toml(place: Place, *lines: str) -> None:
    (place.dir / "csp.toml").write_text("\n".join(('[[agent]]\nname = "ann"\ncommand = "cat"', *lines)))


def is_untouched(place: Place) -> bool:
    there = place.state.exists() or place.history.exists()
    return not there and place.tmux("list-sessions", check=False) == ""


# --- the gateway does not start --------------------------------------------------------------------


@pytest.fixture
def stranger(place: Place) -> Iterator[Path]:
    """A gateway of the same history that the commands of the place cannot see."""
    folder = place.folder / "other"
    folder.mkdir(mode=0o700)
    env = {**place.env, "XDG_RUNTIME_DIR": str(folder), "CSP_PORT": "0"}
    gateway = subprocess.Popen([*place.command, "gateway"], cwd=place.dir, env=env, stderr=subprocess.DEVNULL)
    place.wait(lambda: running_rooms(folder / "csp"), "the other gateway")
    yield folder
    gateway.terminate()
    gateway.wait()


def test_a_journal_that_is_locked_is_one_clear_line(place: Place, stranger: Path) -> None:
    place.agents("ann")
    (other,) = running_rooms(stranger / "csp")
    done = place.csp("up", "--detach")

    assert (done.code, done.err) == (
        1,
        f"csp: the gateway did not start: room 'default' is already served by process {other.pid}"
        " (stop that gateway, or choose another room with --room)\n",
    )


def test_a_journal_that_cannot_be_opened_is_one_clear_line(place: Place) -> None:
    place.agents("ann")
    (place.history / "default" / "journal.jsonl").mkdir(parents=True)
    done = place.csp("up", "--detach")

    assert done.code == 1
    assert done.err.startswith(
        "csp: the gateway did not start: cannot open the journal: Is a directory (check the disk"
    )
    assert len(done.err.splitlines()) == 1
    assert "csp.gateway" not in done.err and "problem=" not in done.err


def test_a_port_of_somebody_else_is_one_clear_line_with_what_to_do(place: Place) -> None:
    place.agents("ann")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        place.set(CSP_PORT=str(port))
        done = place.csp("up", "--detach")

    assert (done.code, done.err) == (
        1,
        f"csp: the gateway did not start: cannot listen on 127.0.0.1 port {port}: address already in use"
        " (choose another one with CSP_PORT or csp gateway --port; 0 means any free port)\n",
    )


def test_a_room_folder_that_is_a_file_is_one_clear_line(place: Place) -> None:
    place.agents("ann")
    place.history.mkdir()
    (place.history / "default").write_text("")
    done = place.csp("up", "--detach")

    assert (done.code, done.err) == (
        1,
        f"csp: history folder '{place.history}/default' cannot be written"
        " (choose another one with --history)\n",
    )


# --- a dry run says what a real one would ----------------------------------------------------------


@pytest.mark.parametrize("run", ["--dry-run", "--detach"])
@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            'profile = "cluade"',
            "csp.toml: agent 'ann': unknown profile 'cluade' (did you mean 'claude'?)",
        ),
        (
            "worktree = true",
            "agent 'ann': a worktree needs a git repository, but '{dir}' is not in one (make one: git init;"
            " or let the agents share the directory: --no-worktrees, worktree = false in csp.toml)",
        ),
    ],
)
def test_a_dry_run_fails_as_a_real_one_would(place: Place, run: str, line: str, problem: str) -> None:
    toml(place, line)
    done = place.csp("up", run)

    assert (done.code, done.err) == (2, f"csp: {problem.format(dir=place.dir)}\n")
    assert run == "--detach" or is_untouched(place)


def test_a_worktree_needs_a_commit_which_a_dry_run_knows(place: Place) -> None:
    toml(place, "worktree = true")
    subprocess.run(["git", "init", "-q", str(place.dir)], check=True)
    dry, real = place.csp("up", "--dry-run"), place.csp("up", "--detach")

    assert dry == real
    assert "worktree needs a commit" in dry.err


# --- the terminal ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("dumb", "csp: terminal 'dumb' cannot show a tmux session (set TERM to one such as xterm-256color"),
        ("no-such", "csp: terminal 'no-such' is not known on this machine (set TERM to one such as"),
        ("", "csp: terminal '' is not known on this machine (set TERM to one such as"),
    ],
)
def test_a_terminal_that_tmux_cannot_draw_on_is_refused_before_anything_starts(
    place: Place, name: str, problem: str
) -> None:
    toml(place)
    place.set(TERM=name)
    terminal = place.terminal("up")
    terminal.expect(pexpect.EOF)
    terminal.close()

    lines = (terminal.before or "").splitlines()
    assert len(lines) == 1 and lines[0].startswith(problem), lines
    assert terminal.exitstatus == 1
    assert is_untouched(place)


# --- Ctrl-C ----------------------------------------------------------------------------------------


def test_ctrl_c_while_agents_start_says_what_is_left_and_how_to_end_it(place: Place) -> None:
    # Never ready: the screen is not that of the profile.
    program = place.program("slow", "#!/bin/sh\nexec cat\n")
    (place.dir / "csp.toml").write_text(
        f'[[agent]]\nname = "ann"\nprofile = "claude"\ncommand = "{program}"\n'
    )
    terminal = place.terminal("up", "--detach")
    terminal.expect("waiting for ann")
    place.watch()
    terminal.sendintr()
    terminal.expect(
        r"csp: interrupted; still running: the gateway at http://\S+, tmux session csp"
        r" \(resume: csp up --room default · stop: csp down --room default\)\r\n"
    )
    terminal.expect(pexpect.EOF)
    terminal.close()

    assert (terminal.before, terminal.exitstatus) == ("", 130)
    assert place.csp("down").code == 0
    assert place.left_over() == []


def test_ctrl_c_while_the_gateway_starts_ends_it(place: Place) -> None:
    place.agents("ann")
    terminal = place.terminal("up")
    terminal.expect("starting the gateway")
    terminal.sendintr()
    terminal.expect("csp: interrupted; nothing of room default is running\r\n")
    terminal.expect(pexpect.EOF)
    terminal.close()

    assert terminal.exitstatus == 130
    assert running_rooms(place.state) == []


# --- commands by variables -------------------------------------------------------------------------


def install(place: Place, *names: str) -> None:
    """Leave nothing but tmux and these on the PATH."""
    for name in names:
        place.program(name, "#!/bin/sh\nexec cat\n")
    folder = place.folder / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "tmux").unlink(missing_ok=True)
    (folder / "tmux").symlink_to(shutil.which("tmux") or "")
    place.set(PATH=str(folder))


@pytest.mark.parametrize("others", [(), ("gemini",)])
def test_a_variable_that_names_no_command_is_named(place: Place, others: tuple[str, ...]) -> None:
    install(place, *others)
    place.set(CSP_CODEX_CMD="no-such-cli -x")
    shown = place.csp("up", "--dry-run")
    place.set(CSP_STRICT_CLI_CHECK="1")
    strict = place.csp("up", "--detach")

    problem = "csp: CSP_CODEX_CMD: the command 'no-such-cli' of agent 'codex' was not found"
    advice = "(check its spelling, or give its path)"
    assert shown.code == 0
    assert f"{problem}; continuing without it {advice}" in shown.err.splitlines()
    assert (strict.code, strict.err) == (1, f"{problem} {advice}\n")


def test_a_missing_command_of_the_orchestrator_is_named_by_its_variable(place: Place) -> None:
    install(place)
    place.set(CSP_ORCH_CMD="no-such-cli")
    shown = place.csp("up", "--dry-run", "--orchestrator")
    install(place, "gemini")
    refused = place.csp("up", "--dry-run", "--orchestrator")

    problem = "csp: CSP_ORCH_CMD: the command 'no-such-cli' of agent 'orchestrator' was not found"
    assert any(line.startswith(f"{problem}; continuing without it") for line in shown.err.splitlines())
    assert refused.code == 1 and refused.err.startswith(f"{problem} (")
