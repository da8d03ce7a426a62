"""Measure the modes: what a turn costs beside the time of its agent."""

import json
import re
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from websockets.sync.client import ClientConnection, connect

from csp.config import Settings
from csp.errors import Broken
from csp.gateway.rules_from_settings import load_rules
from csp.http_client import GatewayClient
from csp.protocol.enums import HUMAN, AgentId
from csp.protocol.events import TurnSignal, encode_event
from csp.protocol.session_parts import Limits
from csp.room.commands import AnyCommand, Join, PostReply, SetMode
from csp.room.decide import decide
from csp.room.room_reducer import apply
from csp.room.room_state import Room
from csp.room.sessions.session_state import Session
from tests.bench.machine.figures import Figures
from tests.bench.machine.peers import Client
from tests.bench.machine.process import TOKEN, start_gateway

CROWDS: Final = (2, 10, 100)
WORDS: Final = "the parser now keeps the order of its arguments, see the test beside it. " * 4
TURNS: Final = 200
RELAY: Final = "gateway, fsync, a reply to the next ask"

OnStep = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is measured: `debate` is rounds of each debate, `relay` turns of a relay."""

    debate: int
    rounds: int = 3
    relay: int = 300


QUICK: Final = Effort(debate=3, rounds=1, relay=100)
FULL: Final = Effort(debate=10)


def measure(effort: Effort, on_step: OnStep) -> Figures:
    """Measure everything; `on_step` hears what comes next."""
    figures = Figures()
    for turn in range(effort.rounds):
        for crowd in CROWDS:
            on_step(f"round {turn + 1} of {effort.rounds}: {crowd} participants")
            _measure_engine(crowd, effort, figures)
            _measure_gateway(crowd, effort, figures)
        on_step(f"round {turn + 1} of {effort.rounds}: {TURNS} turns of autopilot")
        _measure_window(figures)
        spent_ms, commits = relay_turn(effort.relay)
        figures.add(RELAY, "ms/turn", spent_ms)
        figures.add("commits to disk from a reply to the next ask", "", commits)
    return figures


class _Engine:
    """A room in memory, whose agents answer in no time."""

    def __init__(self, crowd: int) -> None:
        self.room = Room()
        self.rules = load_rules(Settings())
        self.events = 0
        self.asks: list[TurnSignal] = []
        self.agents = [AgentId(f"agent-{number}") for number in range(crowd)]
        for agent in self.agents:
            self.do(Join(name=agent))

    def do(self, command: AnyCommand) -> None:
        for event in decide(self.room, command, float(self.events), self.rules):
            self.room = apply(self.room, event)
            encode_event(event)
            self.events += 1
            if isinstance(event, TurnSignal):
                self.asks.append(event)

    @property
    def session(self) -> Session:
        return next(iter(self.room.sessions.by_id.values()))

    def run(self, command: SetMode) -> int:
        """Play a session to its end; return how many turns it took."""
        self.do(command)
        turns = 0
        while (agent := self.session.current) is not None:
            text = f"{agent} in turn {turns}: {WORDS}"
            self.do(PostReply(sender=agent, text=text, turn=self.session.turns[agent].id))
            turns += 1
        return turns


def _measure_engine(crowd: int, effort: Effort, figures: Figures) -> None:
    engine = _Engine(crowd)
    before, began = engine.events, time.perf_counter()
    turns = engine.run(SetMode(sender=HUMAN, mode="debate", topic="tabs", rounds=effort.debate))
    spent = time.perf_counter() - began
    figures.add(f"engine, debate of {crowd}", "ms/turn", spent / turns * 1000)
    figures.add(f"engine, debate of {crowd}, events", "events/s", (engine.events - before) / spent)


def _measure_gateway(crowd: int, effort: Effort, figures: Figures) -> None:
    with tempfile.TemporaryDirectory(prefix="csp-bench-") as name, start_gateway(Path(name)) as server:
        url = f"http://127.0.0.1:{server.port}"
        room = GatewayClient(url, TOKEN)
        agents = {}
        for number in range(crowd):
            said = room.post("/register", {"agentId": f"agent-{number}"})
            agents[said["agentId"]] = GatewayClient(url, said["token"])
        began = time.perf_counter()
        room.post("/mode", {"mode": "debate", "topic": "tabs", "rounds": effort.debate})
        for _ in range(effort.debate):
            for agent, gateway in agents.items():
                _take_turn(gateway, agent)
        spent = time.perf_counter() - began
        if room.get("/mode")["reason"] != "done":
            raise Broken("the debate has not come to its end")
    figures.add(f"gateway, fsync, debate of {crowd}", "ms/turn", spent / (effort.debate * crowd) * 1000)


def _take_turn(gateway: GatewayClient, agent: str) -> None:
    (ask,) = gateway.get(f"/inbox/{agent}")["items"]
    gateway.post("/agent-output", {"content": f"{agent}: {WORDS}", "turn": ask["turn"]})


def relay_turn(turns: int) -> tuple[float, float]:
    """Return what a turn takes of two agents at WebSockets that answer at once: wall time in ms, commits."""
    with tempfile.TemporaryDirectory(prefix="csp-bench-") as name, start_gateway(Path(name)) as server:
        url = f"http://127.0.0.1:{server.port}"
        room = GatewayClient(url, TOKEN)
        said = [room.post("/register", {"agentId": f"agent-{number}"}) for number in range(2)]
        with ExitStack() as stack:
            agents = [stack.enter_context(_listen(server.port, one["token"])) for one in said]
            limits = {"turns": turns + 1, "tokens": 10**9, "minutes": 1e5}
            room.post("/mode", {"mode": "autopilot", "topic": "tabs", "limits": limits})
            ask = _next_ask(agents[0])
            before, start = _commits(server.port), time.perf_counter()
            for number in range(turns):
                reply = {"op": "output", "ref": number, "content": f"{number}: {WORDS}", "turn": ask}
                agents[number % 2].send(json.dumps(reply))
                ask = _next_ask(agents[(number + 1) % 2])
            spent = (time.perf_counter() - start) / turns
            return spent * 1000, (_commits(server.port) - before) / turns


def _listen(port: int, token: str) -> ClientConnection:
    return connect(f"ws://127.0.0.1:{port}/ws", additional_headers={"X-Auth-Token": token}, max_size=None)


def _next_ask(agent: ClientConnection) -> str:
    """Return the turn that an agent is given next; of all else it hears only deliveries are read."""
    while True:
        frame = str(agent.recv(timeout=60))
        if frame.startswith('{"deliver"') and (turn := json.loads(frame)["deliver"].get("turn")):
            return str(turn)


def _commits(port: int) -> int:
    client = Client(port, TOKEN)
    found = re.search(rb"^csp_commits_total (\d+)", client.get("/metrics"), re.MULTILINE)
    client.close()
    return int(found[1]) if found else 0


def _measure_window(figures: Figures) -> None:
    engine = _Engine(2)
    limits = Limits(turns=TURNS, tokens=10**9, minutes=1e6)
    engine.run(SetMode(sender=HUMAN, mode="autopilot", topic="tabs", limits=limits))
    tokens = [len(ask.text) / 4 for ask in engine.asks]
    tenth = TURNS // 10
    figures.add("prompt of turns 11 to 20", "tokens", sum(tokens[10 : 10 + tenth]) / tenth)
    figures.add(f"prompt of the last {tenth} turns of {TURNS}", "tokens", sum(tokens[-tenth:]) / tenth)
