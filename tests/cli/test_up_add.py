"""csp add: what it was told reaches those who start the agent."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from csp.cli import up
from csp.errors import BadInput, Refused
from csp.model_providers import variables_of
from csp.panes.wait_ready import StartOutcome
from csp.room_registry import Address
from tests.cli.recording import Recorded, call_of, with_settings


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--provider", "openai", "--model", "m", "--", "cmd"), "an API model has no command"),
        (("--provider", "openai"), "--provider needs a model"),
        (("--model", "m"), "--model needs a provider"),
        (("--base-url", "http://x"), "--base-url needs a provider"),
        (("--key-env", "K"), "--key-env needs a provider"),
        (("--role", "orchestrator"), "--role needs a provider"),
    ],
)
def test_what_belongs_to_a_model_is_refused_for_a_cli(words: tuple[str, ...], problem: str) -> None:
    with pytest.raises(BadInput) as caught:
        up.add(call_of("add", "x", *words))

    assert caught.value.message == problem


def test_a_model_gets_every_option(tmp_path: Path) -> None:
    words = ("--provider", "openai", "--model", "gpt-5", "--base-url", "http://x/v1", "--key-env", "K")
    member = up.model_of(call_of("add", "gpt", *words, "--role", "orchestrator").args, tmp_path)

    assert (member.name, member.role, member.cwd) == ("gpt", "orchestrator", tmp_path)
    for word in (*words, "--role", "orchestrator"):
        assert word in member.command or word in member.shown_command


@pytest.mark.parametrize(
    ("agent", "problem", "code", "said"),
    [
        ("x", "", 0, "x is here (idle)\n"),
        ("x-2", "", 0, "x-2 is here (idle); the name 'x' was taken\n"),
        ("x", "x has ended", 1, "csp: x has ended\n"),
    ],
)
def test_add_says_how_it_went(
    agent: str,
    problem: str,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcome = StartOutcome(agent=agent, state="idle", problem=problem)
    monkeypatch.setattr(up, "add_cli", lambda call, env: ("x", outcome))

    assert up.add(call_of("add", "x", "--", "cmd")) == code
    assert capsys.readouterr() == ("", said)


def test_add_needs_a_room_of_this_machine() -> None:
    call = call_of("add", "x", "--", "cmd")
    call.__dict__["address"] = Address(url="http://x", token="t")
    with pytest.raises(BadInput, match="needs a room of this machine"):
        up.add(call)
    with pytest.raises(BadInput, match="starts its own gateway"):
        up.add(with_settings(call, gateway_url="http://x"))
    with pytest.raises(Refused, match="this pane is agent 'me'"):
        up.add(with_settings(call, agent="me"))


class Joining:
    """Adds nobody; keeps who would have been added."""

    added: list[tuple[Any, ...]]
    dir = Path("/home/of/the/room")

    def __init__(self, *words: object) -> None:
        pass

    def add(self, *words: Any, may_number: bool) -> StartOutcome:
        assert not may_number
        self.added.append(words)
        return StartOutcome(words[0].agent, "idle")


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    Joining.added = []
    monkeypatch.setattr("csp.panes.up.AddAgents", Joining)
    monkeypatch.setattr("csp.panes.tmux_session.check_tmux", lambda env: "")
    monkeypatch.setattr(up, "need", lambda member, env: member)
    return Joining.added


def test_a_cli_starts_where_it_was_asked_to_or_where_the_room_is_at_home(
    added: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    for words in (("--dir", "sub", "--profile", "codex"), ()):
        call = call_of("add", "mine", *words, "--", "tool", "-x", cwd=tmp_path)
        up.add(with_settings(call, state_dir=tmp_path))
    first, second = (member for (member,) in added)

    assert (first.cwd, first.profile, first.command) == (tmp_path / "sub", "codex", ("tool", "-x"))
    assert (second.cwd, second.profile) == (Joining.dir, "")


@pytest.mark.parametrize(
    ("words", "env"),
    [
        (("--provider", "openai", "--model", "m"), {"OPENAI_API_KEY": "key"}),
        (("--provider", "openai", "--model", "m", "--key-env", "MINE"), {"MINE": "key"}),
        (("--provider", "openai-compatible", "--model", "m", "--base-url", "http://x/v1"), {}),
    ],
)
def test_a_model_gets_its_key_and_a_pane_where_the_room_has_some(
    added: list[tuple[Any, ...]],
    words: tuple[str, ...],
    env: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(up, "process_environment", lambda: env)
    monkeypatch.setattr(up, "panes_of", lambda *_: SimpleNamespace(id="$1"))
    assert up.add(with_settings(call_of("add", "gpt", *words, cwd=tmp_path), state_dir=tmp_path)) == 0
    ((member, given),) = added

    assert (member.agent, member.cwd, given) == ("gpt", Joining.dir, env)


@pytest.mark.parametrize("panes", [None, SimpleNamespace(id="")])
def test_a_model_of_a_room_without_panes_runs_without_one(
    added: list[tuple[Any, ...]], panes: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[Any, ...]] = []

    def start(processes: object, gateway: object, *words: Any) -> StartOutcome:
        started.append(words)
        return StartOutcome("gpt", "idle")

    env = {"OPENAI_API_KEY": "key"}
    monkeypatch.setattr(up, "process_environment", lambda: env)
    monkeypatch.setattr(up, "panes_of", lambda *_: panes)
    monkeypatch.setattr("csp.panes.wait_ready.start_in_background", start)
    call = call_of(
        "add", "gpt", "--provider", "openai", "--model", "m", cwd=tmp_path,
        gateway=Recorded({"/agents": [{"id": "other", "online": True}]}),
    )  # fmt: skip
    up.add(with_settings(call, state_dir=tmp_path))
    ((name, argv, place, given, _, keys),) = started

    assert (name, place, given, added) == ("gpt", tmp_path, env, [])
    assert keys == variables_of("openai", None)
    assert argv[-2:] == ["--room", "default"]
