"""What is checked of an agent CLI, with programs of a line that stand in for it."""

import os
from pathlib import Path
from typing import Any

import pytest

from csp.cli import cli_checks
from csp.cli.cli_checks import Cli
from csp.clis.adapter import Wired
from csp.clis.profile import load_profile
from csp.config import AgentSpec, Settings

CLAUDE = Cli("claude", ("claude",), "npm install it")
ENV = {"PATH": os.environ["PATH"]}


def program(folder: Path, script: str) -> str:
    path = folder / "claude"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("settings", "ok"),
    [
        (Settings(), True),
        (Settings(strict_cli_check=True), False),
        (Settings(agents=(AgentSpec(name="claude"),)), False),
    ],
)
def test_a_cli_that_is_missing_is_a_fault_where_it_is_needed(settings: Settings, ok: bool) -> None:
    assert cli_checks.missing(settings, CLAUDE).ok is ok


def test_an_agent_without_a_command_has_that_of_its_profile() -> None:
    specs = (
        AgentSpec(name="codex"),
        AgentSpec(name="mine", profile="gemini"),
        AgentSpec(name="own", command=("own", "-x")),
        AgentSpec(name="gpt", provider="openai"),
    )
    found = cli_checks.clis_of(Settings(agents=specs, of_clis={"gemini_cmd": ("gemini", "--fast")}))

    assert [(cli.name, cli.command) for cli in found] == [
        ("codex", ("codex",)),
        ("mine", ("gemini", "--fast")),
        ("own", ("own", "-x")),
    ]


@pytest.mark.parametrize("stream", ["", ">&2"])
def test_flags_are_looked_for_in_all_that_help_says(tmp_path: Path, stream: str) -> None:
    path = program(tmp_path, f"echo '  --settings FILE' {stream}")
    wired = Wired(argv=[path, "--own", "--settings", "x"], env={})
    found = cli_checks.check_flags(CLAUDE, path, [path, "--own"], wired, ENV)

    assert (found.ok, found.detail) == (True, "its --help lists the added arguments: --settings")


def test_a_help_that_cannot_be_run_is_told(tmp_path: Path) -> None:
    found = cli_checks.check_flags(CLAUDE, str(tmp_path / "gone"), [], Wired(argv=[], env={}), ENV)

    assert (found.ok, found.detail.startswith("--help failed: ")) == (False, True)


def wiring(tmp_path: Path, command: tuple[str, ...]) -> list[cli_checks.CheckResult]:
    path = program(tmp_path, "echo '  --settings --session-id --append-system-prompt --mcp-config'")
    cli = CLAUDE._replace(command=command)
    place = tmp_path / "run"
    place.mkdir()
    return list(cli_checks.check_wiring(cli, load_profile("claude"), path, ENV, tmp_path, place))


def test_a_run_that_was_only_wired_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    undone: list[Path] = []
    monkeypatch.setattr(cli_checks, "unwire", undone.append)
    found = wiring(tmp_path, ("claude",))

    assert [(one.check, one.ok) for one in found] == [
        ("wiring claude", True),
        ("hooks claude", True),
        ("transcripts claude", True),
    ]
    assert undone == [tmp_path / "run"]


def test_a_command_that_is_no_session_gets_nothing(tmp_path: Path) -> None:
    (found,) = wiring(tmp_path, ("claude", "--print"))

    assert (found.ok, found.detail) == (
        True,
        "'claude --print' is not an interactive session, so nothing is added",
    )


def test_a_cli_without_wiring_is_not_called_a_session_that_is_not_interactive(tmp_path: Path) -> None:
    (found,) = cli_checks.check_wiring(
        CLAUDE, load_profile("generic"), program(tmp_path, "true"), ENV, tmp_path, tmp_path
    )

    assert (found.ok, found.detail) == (True, "this CLI has no hooks, rules or tools to add")


def test_a_hook_whose_words_do_not_arrive_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_checks, "hook_command", lambda spool: f"cat > {tmp_path}/elsewhere")

    assert cli_checks.check_hook(CLAUDE, tmp_path).ok is False


@pytest.mark.parametrize(
    ("hint", "detail"),
    [
        ("projects/here/1.jsonl", "projects can be read"),
        ("projects", "projects can be read"),
        ("none/here/1.jsonl", "none will be created by the first conversation"),
    ],
)
def test_the_place_of_transcripts_is_that_of_all_projects(tmp_path: Path, hint: str, detail: str) -> None:
    (tmp_path / "projects").mkdir()
    wired = Wired(argv=[], env={}, transcript_hint=str(tmp_path / hint))
    found = cli_checks.check_transcripts(CLAUDE, wired)

    assert (found.ok, found.detail) == (True, f"{tmp_path}/{detail}")


def test_transcripts_that_cannot_be_read_are_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def access(path: Any, how: int) -> bool:
        asked.append(how)
        return False

    monkeypatch.setattr(os, "access", access)
    found = cli_checks.check_transcripts(CLAUDE, Wired(argv=[], env={}, transcript_hint=str(tmp_path)))

    assert (found.ok, asked) == (False, [os.R_OK | os.X_OK])


@pytest.mark.parametrize(("answer", "ok"), [("2.1.5 (Claude Code)", True), ("", False)])
def test_a_cli_that_does_not_say_its_version_is_told(tmp_path: Path, answer: str, ok: bool) -> None:
    path = program(tmp_path, f"echo '{answer}'")
    cli, profile, *_ = cli_checks.check_cli(CLAUDE._replace(command=(path,)), path, "claude", ENV, tmp_path)

    assert (cli.ok, profile.ok, profile.advice) == (True, ok, "" if ok else f"run {path} once by hand")


def test_a_program_is_looked_for_on_the_path_of_the_caller(tmp_path: Path) -> None:
    path = program(tmp_path, "echo '2.1.5 (Claude Code)'")
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    found = next(iter(cli_checks.check_clis(Settings(agents=(AgentSpec(name="claude"),)), env, tmp_path)))

    assert found.detail.startswith(path)
