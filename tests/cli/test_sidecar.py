"""csp sidecar: what it was told reaches the sidecar."""

from pathlib import Path
from typing import Any

import pytest

from csp.cli import sidecar
from csp.errors import BadInput, Refused
from csp.room_registry import Address
from tests.cli.recording import call_of, with_settings


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    """Start nothing; return what would have been started."""
    found: list[tuple[Any, Any]] = []
    monkeypatch.setattr("csp.sidecar.launch.launch", lambda order, room: found.append((order, room)))
    return found


def test_every_option_reaches_the_sidecar(launched: list[tuple[Any, Any]], tmp_path: Path) -> None:
    (tmp_path / "prompt.md").write_text("Be brief.\n")
    words = ("--name", "me", "--role", "orchestrator", "--profile", "codex", "--allow-shell")
    call = call_of(
        "sidecar", *words, "--initial-prompt-file", "prompt.md", "--cmd", "tool -x 'a b'", cwd=tmp_path
    )
    sidecar.sidecar(with_settings(call, injection_timeout_s=4.5))
    ((order, room),) = launched

    assert (order.name, order.role, order.command) == ("me", "orchestrator", ("tool", "-x", "a b"))
    assert (order.profile.name, order.initial_prompt) == ("codex", "Be brief.\n")
    assert (order.allow_shell, order.injection_timeout_s, order.cwd) == (True, 4.5, str(tmp_path))
    assert (room.url, room.token, room.name) == ("http://127.0.0.1:9", "token", "default")
    assert room.state_dir == str(call.settings.state_dir)


def test_without_options_the_command_says_which_profile_it_is(launched: list[tuple[Any, Any]]) -> None:
    sidecar.sidecar(call_of("sidecar", "--name", "me", "--", "/opt/bin/gemini", "-y"))
    ((order, _),) = launched

    assert (order.profile.name, order.role, order.allow_shell) == ("gemini", "agent", False)
    assert (order.initial_prompt, order.command) == ("", ("/opt/bin/gemini", "-y"))


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--cmd", "x", "--", "y"), "expected a command by --cmd or after --, got both"),
        (("--cmd", "'x"), "--cmd: no closing quotation"),
        ((), "expected the command to run"),
        (("--initial-prompt-file", "nosuch", "--", "claude"), "--initial-prompt-file: cannot read 'nosuch'"),
    ],
)
def test_mistakes_are_told_before_anything_is_started(
    words: tuple[str, ...], problem: str, launched: list[tuple[Any, Any]], tmp_path: Path
) -> None:
    with pytest.raises(BadInput) as caught:
        sidecar.sidecar(call_of("sidecar", "--name", "me", *words, cwd=tmp_path))

    assert caught.value.message.startswith(problem)
    assert launched == []


def test_a_sidecar_is_not_started_in_the_pane_of_another(launched: list[tuple[Any, Any]]) -> None:
    call = call_of("sidecar", "--name", "me", "--", "claude")
    with pytest.raises(Refused, match="this pane is already agent 'codex'"):
        sidecar.sidecar(with_settings(call, agent="codex"))
    call.__dict__["address"] = Address(url="http://x", token="")
    with pytest.raises(BadInput, match="no token for the room"):
        sidecar.sidecar(call)

    assert launched == []
