"""`csp trust`, and what other commands do in a clone whose csp.toml nobody has accepted."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pexpect
import pytest

from tests.forks import run

PYTHON: Final = (sys.executable, "-P", "-m", "csp.cli")


class Clone:
    """A repository that would run a program wherever one can be named."""

    def __init__(self, folder: Path) -> None:
        self.dir, self.mark, self.home = folder / "clone", folder / "sprung", folder / "home"
        for path in (self.dir, self.home, folder / "run", folder / "tmux"):
            path.mkdir(mode=0o700)
        trap = self.dir / "trap.sh"
        trap.write_text(f"#!/bin/sh\nenv >> {self.mark}\nexec sleep 1\n")
        trap.chmod(0o755)
        commands = "\n".join(f'{name}_cmd = "./trap.sh"' for name in ("orch", "claude", "codex", "gemini"))
        agent = '[[agent]]\nname = "ann"\nprofile = "generic"\ncommand = "./trap.sh"\n'
        (self.dir / "csp.toml").write_text(f"[room]\norchestrator = true\n{commands}\n{agent}")
        (self.dir / ".env").write_text("CSP_CLAUDE_CMD=./trap.sh\n")
        for name in ("csp", "webbrowser", "venv", "ensurepip", "pip", "anthropic", "sitecustomize"):
            (self.dir / f"{name}.py").write_text(f"import os; os.system({str(trap)!r})\n")
        self.env = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "TMUX_TMPDIR": str(folder / "tmux"),
            "CSP_HISTORY_DIR": str(folder / "history"),
            "CSP_PORT": "0",
        }

    def csp(self, *argv: str) -> "subprocess.CompletedProcess[str]":
        return run(list(argv), self.dir, self.env)


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


@pytest.mark.parametrize(
    "argv",
    [
        ["up", "--detach"],
        ["up", "--dry-run"],
        ["up", "--demo", "--detach"],
        ["up", "--orchestrator", "--json"],
        ["add", "claude"],
        ["gateway"],
        ["gateway", "--supervise"],
    ],
)
def test_a_command_that_starts_something_refuses_and_says_what_accepts(clone: Clone, argv: list[str]) -> None:
    done = clone.csp(*argv)

    assert done.returncode == 1
    assert (
        "csp.toml has settings that you have not accepted: room.orch_cmd = ./trap.sh, 4 more" in done.stderr
    )
    assert f"csp trust {clone.dir}" in done.stderr
    assert not clone.mark.exists()


@pytest.mark.parametrize(
    "argv",
    [
        ["config"],
        ["doctor"],
        ["status"],
        ["agents"],
        ["down"],
        ["replay"],
        ["logs"],
        ["collaborate", "x"],
        ["completion", "bash"],
        ["trust", "--list"],
        ["sidecar", "--name", "x", "--", "claude"],
        ["agent", "--name", "x", "--provider", "anthropic", "--model", "m"],
        ["web", "--no-open"],
        ["--help"],
        [],
    ],
)
def test_no_other_command_runs_anything_of_the_clone(clone: Clone, argv: list[str]) -> None:
    clone.csp(*argv)

    assert not clone.mark.exists()


def test_config_shows_what_is_left_out(clone: Clone) -> None:
    done = clone.csp("config")

    assert "trap" not in done.stdout
    assert "agent ann: command = ./trap.sh" in done.stderr and "csp trust" in done.stderr


def test_doctor_reports_what_is_not_accepted(clone: Clone) -> None:
    found = {row["check"]: row for row in json.loads(clone.csp("doctor", "--json").stdout)}

    assert not found["trust"]["ok"] and "./trap.sh" in found["trust"]["detail"]


def test_trust_shows_accepts_lists_and_takes_back(clone: Clone) -> None:
    accepted = clone.csp("trust")
    listed = clone.csp("trust", "--list")
    plan = clone.csp("up", "--dry-run")
    removed = clone.csp("trust", "--remove")

    assert "agent ann: command = ./trap.sh" in accepted.stdout
    assert listed.stdout == f"{clone.dir}/csp.toml\n"
    assert (plan.returncode, "ann: ./trap.sh" in plan.stdout) == (0, True)
    assert removed.returncode == 0
    assert clone.csp("up", "--dry-run").returncode == 1


def test_trust_speaks_json(clone: Clone) -> None:
    accepted = json.loads(clone.csp("trust", str(clone.dir / "csp.toml"), "--json").stdout)
    (clone.dir / "trap.sh").write_text("changed\n")
    listed = json.loads(clone.csp("trust", "--list", "--json").stdout)
    removed = [json.loads(clone.csp("trust", "--remove", "--json").stdout)["removed"] for _ in range(2)]

    assert accepted["settings"][-1] == {"key": "agent ann: command", "value": "./trap.sh"}
    assert listed == [{"path": f"{clone.dir}/csp.toml", "current": False}]
    assert removed == [True, False]


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["trust", "trap.sh"], 2, "expected a csp.toml or its directory"),
        (["trust", ".."], 1, "there is no"),
        (["trust", "--remove"], 1, "was not accepted"),
    ],
)
def test_trust_refuses_what_makes_no_sense(clone: Clone, argv: list[str], code: int, said: str) -> None:
    done = clone.csp(*argv)

    assert done.returncode == code and said in done.stderr


def test_a_file_without_power_has_nothing_to_accept(clone: Clone) -> None:
    (clone.dir / "csp.toml").write_text("[limits]\nturns = 3\n")

    assert "nothing in" in clone.csp("trust").stderr
    assert clone.csp("up", "--dry-run", "--demo").returncode == 0


@pytest.mark.parametrize("argv", [["trust"], ["up", "--trust", "--dry-run"]])
def test_an_agent_accepts_nothing(clone: Clone, argv: list[str]) -> None:
    clone.env["CSP_AGENT"] = "claude"

    assert clone.csp(*argv).returncode == 1
    assert not (clone.home / ".local").exists()


def test_a_flag_that_a_person_types_accepts(clone: Clone) -> None:
    assert clone.csp("up", "--trust", "--dry-run").returncode == 0
    assert clone.csp("up", "--dry-run").returncode == 0


@pytest.mark.parametrize(("answer", "is_accepted"), [("y", True), ("n", False), ("", False)])
def test_a_person_at_a_terminal_is_shown_and_asked(clone: Clone, answer: str, is_accepted: bool) -> None:
    (clone.dir / "csp.toml").write_text('[[agent]]\nname = "a"\ncommand = "./trap.sh \\u001b[2J"\n')
    env = clone.env | {"PYTHONPATH": str(Path(__file__).parents[2])}
    asked = pexpect.spawn(
        PYTHON[0],
        [*PYTHON[1:], "up", "--dry-run"],
        cwd=str(clone.dir),
        env=env,
        encoding="utf-8",
        timeout=120,
    )
    asked.expect(r"Accept the file until it changes\? \[y/N\]")
    shown = asked.before or ""
    asked.sendline(answer)
    asked.expect(pexpect.EOF)
    asked.close()

    # What the file says cannot drive the terminal that it is shown on.
    assert "agent a: command = " in shown and "\x1b[2J" not in shown
    assert (asked.exitstatus == 0) is is_accepted
    assert (clone.csp("up", "--dry-run").returncode == 0) is is_accepted


def test_a_directory_below_accepts_the_file_of_its_project(clone: Clone) -> None:
    (clone.dir / ".git").mkdir()
    (clone.dir / ".git" / "HEAD").touch()
    (below := clone.dir / "src").mkdir()
    done = run(["trust"], below, clone.env)

    assert done.returncode == 0, done.stderr
    assert f"accepted {clone.dir}/csp.toml" in done.stderr
    assert run(["trust", "--list"], below, clone.env).stdout == f"{clone.dir}/csp.toml\n"
