"""A CLI that is added as one folder is known everywhere."""

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from csp.clis.registry import cli_names

ROOT = Path(__file__).resolve().parents[2]
PROFILE = """
name = "fourth"
commands = ["fourth"]
versions = ">=1,<2"

[delivery]
proof = "transcript"

[capture]
kind = "fourth"
"""
ADAPTER = '''
"""A CLI that nobody knew before."""

from csp.clis.adapter import CliAdapter, Wired


class FourthAdapter(CliAdapter):
    label = "Fourth"
    install = "get fourth"
    has_mcp = True
    has_hooks = True
    knows_transcript = True
    peers_help = "leave Fourth its peers"

    def is_session(self, argv):
        return "--print" not in argv

    def wire(self, run):
        hint = run.folder + "/fourth.jsonl"
        return Wired(
            argv=[*run.argv, "--log", hint], env=run.env, transcript_hint=hint, spool_dir=run.spool
        )

    def resume(self, argv, session_id):
        return [*argv, "--continue", session_id]

    def new_reader(self, since, session_id, path):
        from csp.clis.plain.transcript import PlainReader

        return PlainReader(since, session_id, path)


ADAPTER = FourthAdapter()
'''
PROGRAM = "#!/bin/sh\ncase $1 in --version) echo 1.2.3;; --help) echo 'usage: fourth --log FILE';; esac\n"


class Machine:
    """A machine on which the folder of a fourth CLI was added and its program is installed."""

    def __init__(self, home: Path) -> None:
        self.home, self.clis, bin = home, home / "clis", home / "bin"
        for folder in (self.clis / "fourth", bin):
            folder.mkdir(parents=True)
        (self.clis / "fourth" / "profile.toml").write_text(PROFILE)
        (self.clis / "fourth" / "__init__.py").write_text(ADAPTER)
        (bin / "fourth").write_text(PROGRAM)
        (bin / "fourth").chmod(0o755)
        self.env = {"HOME": str(home), "PATH": f"{bin}{os.pathsep}/usr/bin:/bin", "SHELL": "", "TERM": "dumb"}

    def run(self, code: str) -> str:
        """Run Python code on this machine; return what it prints."""
        begin = f"import csp.clis; csp.clis.__path__.append({str(self.clis)!r})\n"
        done = subprocess.run(
            [sys.executable, "-c", begin + dedent(code)],
            cwd=self.home,
            env=self.env | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def csp(self, *words: str) -> str:
        """Run a command of csp."""
        return self.run(f"from csp.cli import main; main({list(words)!r})")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_its_profile_is_chosen_by_its_command(machine: Machine) -> None:
    code = """
        from csp.clis.profile import load_profile, profile_for
        from csp.clis.registry import profile_names
        print(profile_names(), profile_for("/opt/fourth", "-x").name, load_profile("fourth").capture)
    """

    names = [*cli_names(), "fourth", "demo", "generic", "shell"]
    assert machine.run(code) == f"{names} fourth fourth\n"


def test_a_run_of_it_is_wired_and_resumed(machine: Machine) -> None:
    code = """
        from csp.clis.adapter import CliRun
        from csp.clis.registry import find_adapter
        from csp.clis.wiring import wire
        for words in (["fourth"], ["fourth", "--print"]):
            print(wire("fourth", CliRun("run", words, {}, "s")).argv)
        print(find_adapter("fourth").resume(["fourth"], "s-1"))
    """
    wired, left_alone, resumed = machine.run(code).splitlines()

    assert wired == "['fourth', '--log', 'run/fourth.jsonl']"
    assert left_alone == "['fourth', '--print']"
    assert resumed == "['fourth', '--continue', 's-1']"


def test_its_transcript_is_followed(machine: Machine) -> None:
    lines = [
        {"type": "prompt", "text": "[from ann #7] hi"},
        {"type": "text", "text": "hello"},
        {"type": "end"},
    ]
    (machine.home / "t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    code = """
        from csp.sidecar.capture.follower import FollowedRun, Follower
        from csp.terminal.reply_tracker import CapturedReply
        run = FollowedRun(kind="fourth", child_pid=1, since=0, transcript_hint="t.jsonl")
        print([outcome.text for outcome in Follower(run).catch_up() if isinstance(outcome, CapturedReply)])
    """

    assert machine.run(code) == "['hello']\n"


def test_the_short_way_to_a_sidecar_knows_it(machine: Machine) -> None:
    code = """
        from csp.cli.fast_sidecar import _profile
        profile = _profile("fourth")
        print(profile.name, profile.capture, profile.source)
    """

    assert machine.run(code) == f"fourth fourth {machine.clis}/fourth/profile.toml\n"


def test_doctor_checks_it(machine: Machine) -> None:
    code = """
        from pathlib import Path
        from csp.cli.cli_checks import check_clis
        from csp.config import load_settings, process_environment
        for row in check_clis(load_settings(), process_environment(), Path.cwd()):
            print(row.check, "|", row.ok, "|", row.detail)
    """
    rows = dict(line.split(" | ", 1) for line in machine.run(code).splitlines())

    assert rows["cli fourth"].endswith("bin/fourth, 1.2.3")
    assert rows["profile fourth"] == "True | 1.2.3, tested"
    assert rows["wiring fourth"] == "True | its --help lists the added arguments: --log"
    assert rows["hooks fourth"].startswith("True | the hook command works")
    assert rows["transcripts fourth"].startswith("True | ")


def test_up_starts_it_where_it_is_installed(machine: Machine) -> None:
    planned = machine.csp("up", "--dry-run", "--room", "x")

    assert "window 1: human, fourth\n  fourth: fourth (in " in planned


def test_its_command_is_a_setting(machine: Machine) -> None:
    code = """
        from csp.config import load_settings
        env = {"HOME": "/h", "CSP_FOURTH_CMD": "mine -x", "CSP_FOURTH_PEERS": "1"}
        settings = load_settings(env=env)
        print(settings.command_of("fourth"), settings.has_peers("fourth"), settings.has_peers("claude"))
    """

    assert machine.run(code) == "('mine', '-x') True False\n"


def test_help_names_it(machine: Machine) -> None:
    assert f"{', '.join(cli_names())}, fourth, demo, generic or shell" in " ".join(
        machine.csp("sidecar", "--help").split()
    )
