"""Two real Claudes in a sealed debate: what one writes to the other past the room does not arrive."""

from pathlib import Path
from typing import Final

import pytest

from csp.protocol.events import AgentResponse
from tests.clis.bringup import SetUp
from tests.models.rules import Call, Pause, Rule, Text
from tests.sidecar.newest import PATIENCE_S, addresses, scene

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("newest clis")]

TOPIC: Final = "herons or storks"
WHISPER: Final = "between us: the answer is a spoonbill"
POSITIONS: Final = {"claude": "In my view: herons.", "claude-2": "In my view: storks."}


@pytest.mark.parametrize("has_tools", [False, pytest.param(True, marks=pytest.mark.full)])
def test_a_sealed_phase_has_no_way_past_the_room(tmp_path: Path, has_tools: bool) -> None:
    """Also from one that was given its tools back nothing arrives: the other one refuses."""
    with scene(tmp_path) as play:
        first = play.cli("claude", SetUp(env={"CSP_CLAUDE_PEERS": "1"} if has_tools else {}))
        own_url = {"ANTHROPIC_BASE_URL": play.server.url("claude-2")}
        play.stage.seat("claude", first.argv, env=first.env, cwd=first.cwd).wait_ready("idle", PATIENCE_S)
        before = addresses(first.home)
        second = play.stage.seat("claude-2", first.argv, env=first.env | own_url, cwd=first.cwd)
        second.wait_ready("idle", PATIENCE_S)
        to = next((to for pid, to in addresses(first.home).items() if pid not in before), "claude-2")
        lists = Call(name="ListAgents", arguments={})
        sends = Call(name="SendMessage", arguments={"to": to, "message": WHISPER, "summary": "a secret"})
        has_whispered = lambda text: "Present your position" in text and TOPIC in text  # noqa: E731
        play.server.add(
            Rule(
                match=has_whispered,
                reply=[
                    Text(text="I look."),
                    lists,
                    Text(text="I try."),
                    sends,
                    Text(text=POSITIONS["claude"]),
                ],
                client="claude",
            ),
            # It thinks until the other one has spoken, so that there is time for a message to arrive.
            Rule(
                match=has_whispered,
                reply=[Pause(seconds=8), Text(text=POSITIONS["claude-2"])],
                client="claude-2",
            ),
        )
        body = {"mode": "debate", "topic": TOPIC, "agents": ["claude", "claude-2"], "rounds": 1}
        play.stage.room.gateway.post("/mode", body)
        play.wait(lambda: play.stage.room.gateway.get("/mode")["status"] == "ended", "the end of the debate")
        # What was kept for it would come with its next turn.
        assert play.answer(play.stage.send("claude-2", "anything new?"), "claude-2") == "ok"

        said = [event.text for event in play.stage.room.journal() if isinstance(event, AgentResponse)]
        asked = play.server.exchanges("claude-2")
        tried = [name for one in play.server.exchanges("claude") for name in one.calls]
        assert set(said[:2]) == set(POSITIONS.values())
        assert tried == ["ListAgents", "SendMessage"]
        assert asked and not any(WHISPER in str(exchange.body) for exchange in asked)
        assert [one for one in play.notices() if one.startswith("claude ") and f"{to} past the room" in one]
