"""Where the program of a command is found."""

from pathlib import Path

import pytest

from csp.config import Settings
from csp.errors import NotFound
from csp.panes import find_program
from csp.panes.find_program import FoundProgram, aliases, find
from csp.panes.members import MemberRequest, choose, member_for, need

BASH = "/bin/bash"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A home with an empty folder on the PATH, for a user of bash."""
    (tmp_path / "bin").mkdir()
    return {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin"), "SHELL": BASH}


def program(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def startup_file(tmp_path: Path, *lines: str) -> None:
    (tmp_path / ".bashrc").write_text("\n".join(lines) + "\n")


def test_what_is_on_the_path_stays_as_it_is(tmp_path: Path, env: dict[str, str]) -> None:
    program(tmp_path / "bin" / "claude")
    program(tmp_path / ".claude" / "local" / "claude")
    startup_file(tmp_path, "alias claude='/opt/other/claude'")

    assert find(("claude", "--model", "opus"), tmp_path, env) == FoundProgram(("claude", "--model", "opus"))


@pytest.mark.parametrize("place", [".claude/local/claude", ".local/bin/claude"])
def test_claudes_own_install_is_found_outside_of_the_path(
    tmp_path: Path, env: dict[str, str], place: str
) -> None:
    path = program(tmp_path / place)

    assert find(("claude", "--model", "opus"), tmp_path, env) == FoundProgram((path, "--model", "opus"))
    assert find(("codex",), tmp_path, env) is None


def test_an_install_that_cannot_be_run_is_passed_over(tmp_path: Path, env: dict[str, str]) -> None:
    path = Path(program(tmp_path / ".claude" / "local" / "claude"))
    path.chmod(0o644)

    assert find(("claude",), tmp_path, env) is None


@pytest.mark.parametrize(
    "alias",
    [
        "alias claude='{home}/opt/claude --model opus'",
        "alias claude='~/opt/claude --model opus'",
        "alias claude='$HOME/opt/claude --model opus'",
        "alias claude='${{HOME}}/opt/claude --model opus'",
        "alias claude=\"'{home}/opt/claude' --model opus\"",
        "echo hello; alias claude='{home}/opt/claude --model opus'; alias ls='ls --color'",
    ],
)
def test_an_alias_of_the_shell_is_resolved(tmp_path: Path, env: dict[str, str], alias: str) -> None:
    path = program(tmp_path / "opt" / "claude")
    startup_file(tmp_path, alias.format(home=tmp_path))

    assert find(("claude", "-c"), tmp_path, env) == FoundProgram((path, "--model", "opus", "-c"))


def test_an_alias_may_name_a_program_on_the_path(tmp_path: Path, env: dict[str, str]) -> None:
    path = program(tmp_path / "bin" / "claude-next")
    startup_file(tmp_path, "alias claude=claude-next")

    # The path no longer shows what CLI it is, so its profile is kept.
    assert find(("claude",), tmp_path, env) == FoundProgram((path,), "claude")


@pytest.mark.parametrize(
    "alias",
    [
        "alias claude='touch {home}/ran; {home}/opt/claude'",
        "alias claude='$(touch {home}/ran)'",
        "alias claude='`touch {home}/ran`'",
        "alias claude='MODE=x {home}/opt/claude'",
        "alias claude='{home}/opt/missing'",
        "alias claude='opt/claude'",
        'alias claude="\'"',
        "alias claude=''",
        "claude() {{ touch {home}/ran; }}",
    ],
)
def test_an_alias_that_only_a_shell_could_run_is_left_alone(
    tmp_path: Path, env: dict[str, str], alias: str
) -> None:
    program(tmp_path / "opt" / "claude")
    startup_file(tmp_path, alias.format(home=tmp_path))

    assert find(("claude",), tmp_path, env) is None
    assert not (tmp_path / "ran").exists()


def test_the_cli_is_not_started_to_find_it(tmp_path: Path, env: dict[str, str]) -> None:
    path = tmp_path / "opt" / "claude"
    program(path)
    path.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    startup_file(tmp_path, f"alias claude={path}")

    assert find(("claude",), tmp_path, env) == FoundProgram((str(path),))
    assert not (tmp_path / "ran").exists()


def test_the_shell_is_asked_once_for_all_names(tmp_path: Path, env: dict[str, str]) -> None:
    startup_file(tmp_path, f"echo . >> {tmp_path}/started")

    assert [find((name,), tmp_path, env) for name in ("claude", "codex", "gemini")] == [None, None, None]
    assert (tmp_path / "started").read_text() == ".\n"


def test_a_shell_that_does_not_answer_is_not_waited_for(
    tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find_program, "ALIASES_S", 0.2)
    startup_file(tmp_path, "alias claude=/bin/true", "/bin/sleep 600", f"/bin/touch {tmp_path}/answered")

    assert aliases(env) == {}
    assert not (tmp_path / "answered").exists()


@pytest.mark.parametrize("shell", ["", "bash", "/no/such/bash", "/usr/bin/fish", "/bin/false"])
def test_a_shell_that_cannot_be_asked_has_no_aliases(env: dict[str, str], shell: str) -> None:
    assert aliases({**env, "SHELL": shell}) == {}


def test_a_path_is_taken_as_it_is(tmp_path: Path, env: dict[str, str]) -> None:
    program(tmp_path / "mine")

    assert find(("./mine", "-x"), tmp_path, env) == FoundProgram(("./mine", "-x"))
    assert find(("./other",), tmp_path, env) is None


# --- who uses it ---------------------------------------------------------------------------------


def test_up_starts_claude_from_its_own_install(tmp_path: Path, env: dict[str, str]) -> None:
    path = program(tmp_path / ".claude" / "local" / "claude")
    lineup = choose(Settings(), MemberRequest(dir=tmp_path, orchestrator=True), env)

    assert [(member.agent, member.command) for member in lineup.members] == [
        ("orchestrator", (path, "--model", "haiku")),
        ("claude", (path,)),
    ]
    assert [note.partition(" of agent")[0] for note in lineup.notes] == [
        "the command 'codex'",
        "the command 'gemini'",
    ]


def test_add_starts_claude_from_behind_its_alias(tmp_path: Path, env: dict[str, str]) -> None:
    path = program(tmp_path / "opt" / "run-claude")
    startup_file(tmp_path, f"alias claude='{path} --model opus'")
    member = need(member_for("claude", (), Settings(), tmp_path), env)

    assert (member.command, member.profile) == ((path, "--model", "opus"), "claude")


def test_a_missing_cli_says_how_to_name_its_place(tmp_path: Path, env: dict[str, str]) -> None:
    with pytest.raises(NotFound) as error:
        need(member_for("claude", (), Settings(), tmp_path), env)

    assert error.value.hint == (
        "install it: npm install -g @anthropic-ai/claude-code; or say where it is: CSP_CLAUDE_CMD=PATH"
    )
