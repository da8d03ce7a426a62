"""A model's stay in a room, as far as it needs no room: its voice, its record, what it gives back."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from csp.agents.api import agent_program as programs
from csp.agents.api.agent_program import AgentProgram, AgentStay, end_reason, taken_up
from csp.agents.api.model_pane import ModelPane
from csp.agents.api.providers import Model, Target
from csp.client import Registered
from csp.errors import Broken, Forbidden, NotFound, Unauthenticated
from csp.model_providers import PROVIDERS
from csp.prompt_files import load_prompts
from csp.protocol.enums import JoinRole
from csp.protocol.requests import Usage
from csp.room.commands import WindowSize
from csp.sidecar.run_record import SidecarRecord
from tests.cli.recording import Recorded

KEY = "sk-test-of-nobody"


@pytest.fixture
def stay(tmp_path: Path) -> AgentStay:
    return AgentStay(
        name="gpt",
        role=JoinRole.AGENT,
        target=Target(provider="openai", model="gpt-5", key=KEY, timeout_s=7.0),
        provider=PROVIDERS["openai"],
        url="http://127.0.0.1:9",
        token="room",
        room="den",
        state_dir=tmp_path,
        cwd="/w",
        prompts=load_prompts(),
        window=WindowSize(items=3),
        env={"CSP_PANES": "x"},
    )


def program_of(stay: AgentStay) -> AgentProgram:
    program = AgentProgram(stay, cast(Model, None), ModelPane(lambda _: None))
    program.agent = "gpt-2"
    return program


def test_a_prompt_of_the_user_comes_last(stay: AgentStay) -> None:
    plain = program_of(stay)._voice().system
    told = program_of(replace(stay, prompt="Find mistakes."))._voice().system

    assert told == f"{plain}\n\nFind mistakes."


def joined() -> Registered:
    return cast(Registered, type("Joined", (), {"agent": "gpt-2", "token": "own", "seq": 4})())


def test_a_voice_has_all_that_was_asked_for(stay: AgentStay) -> None:
    voice = program_of(stay)._voice()

    assert (voice.agent, voice.model_name, voice.secret, voice.step_s) == ("gpt-2", "gpt-5", KEY, 7.0)
    assert (voice.window, voice.prompts) == (WindowSize(items=3), stay.prompts)
    assert "gpt-2" in voice.system and voice.prices


def test_an_orchestrator_is_told_what_it_may_do(stay: AgentStay) -> None:
    plain = program_of(stay)._voice().system
    leading = program_of(replace(stay, role=JoinRole.ORCHESTRATOR))._voice().system

    assert leading.startswith(plain) and len(leading) > len(plain) + 100


def test_a_price_is_known_only_for_a_provider_of_the_list(stay: AgentStay) -> None:
    usage = Usage(input=1_000_000, output=1_000_000)
    cost = program_of(stay)._voice().price(usage)

    assert cost is not None and cost > 0
    at_home = replace(stay, provider=PROVIDERS["openai-compatible"])
    assert program_of(at_home)._voice().price(usage) is None


def test_a_record_is_left_for_the_panes_without_the_key(stay: AgentStay, tmp_path: Path) -> None:
    program_of(stay)._record(joined())
    (path,) = tmp_path.rglob("run.json")
    run = SidecarRecord.load(path.parent)

    assert run is not None
    assert (run.name, run.agent, run.token, run.url, run.room) == ("gpt", "gpt-2", "own", stay.url, "den")
    assert (run.profile, run.cwd, run.env) == ("api", "/w", {"CSP_PANES": "x"})
    assert KEY not in path.read_text()


def test_a_room_that_is_only_an_address_has_no_record(stay: AgentStay, tmp_path: Path) -> None:
    program_of(replace(stay, room=""))._record(joined())

    assert list(tmp_path.rglob("*.json")) == []


async def test_who_comes_back_takes_its_id_up_again(stay: AgentStay, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    refused: list[Exception] = []

    async def register(self: AgentProgram, token: str) -> Registered:
        tried.append(token)
        if refused and token == "old":
            raise refused[0]
        return joined()

    monkeypatch.setattr(AgentProgram, "_register", register)
    monkeypatch.setattr(programs, "left_behind", lambda *_: {"url": stay.url, "token": "old"})
    await program_of(stay).join()
    for error in (Unauthenticated("x"), Forbidden("x"), NotFound("x")):
        refused[:] = [error]
        await program_of(stay).join()
    await program_of(replace(stay, url="http://127.0.0.1:8")).join()
    await program_of(replace(stay, room="")).join()

    assert tried == ["old", *["old", "room"] * 3, "room", "room"]


def sessions(**inbox: Any) -> Recorded:
    items = [
        {"id": "s-1", "status": "running", "agents": ["gpt"]},
        {"id": "s-2", "status": "ended", "agents": ["gpt"]},
        {"id": "s-3", "status": "running", "agents": ["other"]},
    ]
    turns = {"orchestration": {"turns": {"gpt": "t-1", "other": "t-2"}}}
    return Recorded({"/sessions": {"items": items}, "/sessions/s-1": turns, "/inbox/gpt": inbox})


def test_only_turns_that_will_not_come_again_are_given_back() -> None:
    assert taken_up(sessions(items=[]), "gpt") == ["t-1"]
    assert taken_up(sessions(items=[{"turn": "t-1"}]), "gpt") == []


def test_a_turn_is_given_back_with_its_reason(stay: AgentStay, monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = Recorded({"/agent-output": {}})
    monkeypatch.setattr(programs, "GatewayClient", lambda url, token: gateway)
    monkeypatch.setattr(programs, "taken_up", lambda found, agent: [f"t-{agent}"])
    program_of(stay)._hand_back(joined())

    assert gateway.bodies == [
        {"content": "", "turn": "t-gpt-2", "ending": "failed", "reason": "it was restarted"}
    ]


async def test_who_comes_late_hears_what_was_said_before(
    stay: AgentStay, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"id": "m-1", "sender": "human", "target": "all", "text": "hello", "thread": "side"}
    gateway = Recorded({"/history": {"items": [said]}})
    monkeypatch.setattr(programs, "GatewayClient", lambda url, token: gateway)
    heard: list[tuple[Any, str]] = []
    listener: Any = type("Listener", (), {"hear": lambda self, item, thread: heard.append((item, thread))})()
    await program_of(stay)._catch_up(listener, joined())

    assert gateway.bodies == [{"limit": 24, "types": "human_message,agent_call,agent_response"}]
    ((item, thread),) = heard
    assert (item.id, item.sender, item.target, item.text, thread) == ("m-1", "human", "all", "hello", "side")


def test_the_end_has_a_reason() -> None:
    assert end_reason(None) == "the connection to the room has ended"
    removed = "it was removed from the room, or its name was taken"
    assert end_reason(Unauthenticated("x")) == end_reason(Forbidden("x")) == removed
    assert end_reason(Broken("the disk is full")) == "the disk is full"
    with pytest.raises(ZeroDivisionError):
        end_reason(ZeroDivisionError())
