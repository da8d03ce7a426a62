"""csp agent: how a model's stay begins and ends, without a model; what reaches it is in test_api_panes.py."""

import asyncio
import contextlib
import os
import pty
import signal
import termios
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from csp.agents.api.model_pane import ModelPane
from csp.cli import agent
from csp.cli.verb_call import VerbCall
from csp.errors import Broken
from tests.cli.recording import call_of, with_settings

WORDS = ("--name", "gpt", "--provider", "openai-compatible", "--model", "m", "--base-url", "http://x/v1")


@pytest.fixture
def call(tmp_path: Path) -> VerbCall:
    return with_settings(call_of("agent", *WORDS, cwd=tmp_path), state_dir=tmp_path)


def test_the_window_of_the_room_is_that_of_its_settings(call: VerbCall) -> None:
    stay = agent.stay_of(with_settings(call, window_items=3))

    assert (stay.window.items, stay.room, stay.state_dir) == (3, "default", call.settings.state_dir)
    assert stay.prompts["talk"]


async def test_a_signal_stops_it_and_its_log_is_where_it_is_looked_for(
    call: VerbCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers: dict[int, Any] = {}
    logs: list[Path] = []
    monkeypatch.setattr(
        asyncio.SelectorEventLoop,
        "add_signal_handler",
        lambda loop, number, act: handlers.update({number: act}),
    )
    monkeypatch.setattr(agent, "log_to", logs.append)

    async def join() -> Any:
        return SimpleNamespace(agent="gpt-2")

    async def stay(joined: Any, stopped: asyncio.Event) -> str:
        handlers[signal.SIGHUP]()
        await stopped.wait()
        return "its end"

    program: Any = SimpleNamespace(join=join, run=stay)

    assert await agent.work(call, program) == "its end"
    assert set(handlers) == {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    assert logs == [call.settings.state_dir / "default.agents" / "gpt-2" / "brain.log"]


@pytest.mark.parametrize("why", ["", "it was removed"])
def test_who_leaves_against_its_will_says_why(
    call: VerbCall, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(call: VerbCall, program: Any) -> str:
        return why

    monkeypatch.setattr(agent, "opened_model", lambda stay: None)
    monkeypatch.setattr(agent, "work", run)
    monkeypatch.setattr(
        "csp.agents.api.agent_program.AgentProgram", lambda *words: SimpleNamespace(agent="gpt-2")
    )
    if not why:
        assert agent.agent(call) == 0
        return
    with pytest.raises(Broken, match="gpt-2 has left the room: it was removed"):
        agent.agent(call)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_colours_are_for_terminals_alone(
    call: VerbCall, is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def program(stay: object, model: object, pane: ModelPane) -> SimpleNamespace:
        pane.title("hello")
        return SimpleNamespace(agent="gpt-2")

    async def run(call: VerbCall, program: Any) -> str:
        return ""

    monkeypatch.setattr(agent, "opened_model", lambda stay: None)
    monkeypatch.setattr(agent, "work", run)
    monkeypatch.setattr("csp.agents.api.agent_program.AgentProgram", program)
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal)
    monkeypatch.delenv("NO_COLOR", raising=False)

    assert agent.agent(call) == 0
    assert ("\x1b[" in capsys.readouterr().out) is is_terminal


def test_a_package_that_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(provider: object, target: object) -> None:
        raise ImportError("no _ssl")

    monkeypatch.setattr("csp.agents.api.providers.open_model", fail)
    stay: Any = SimpleNamespace(provider=SimpleNamespace(extra="openai"), target=None)
    with pytest.raises(Broken, match="the package 'openai' cannot be loaded: no _ssl"):
        agent.opened_model(stay)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    master, slave = pty.openpty()
    with open(slave) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        yield slave
    os.close(master)


def is_echoed(terminal: int) -> bool:
    return bool(termios.tcgetattr(terminal)[3] & termios.ECHO)


def test_keys_are_shown_again_afterwards(terminal: int) -> None:
    with contextlib.suppress(KeyboardInterrupt), agent.quiet_terminal():
        assert not is_echoed(terminal)
        raise KeyboardInterrupt

    assert is_echoed(terminal)
