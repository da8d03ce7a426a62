"""The three real CLIs behind sidecars in one room; what their models were asked is the truth."""

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from csp.http_client import GatewayClient
from csp.protocol.enums import AgentState
from csp.protocol.events import KnownEvent, StateChanged
from csp.sidecar.run_record import SidecarRecord
from tests.clis.bringup import RealCli, SetUp, bring_up
from tests.clis.loopback import Loopback
from tests.clis.passage import passage
from tests.models.exchange import Exchange
from tests.models.rules import Part, Pause, Rule, Text
from tests.models.server import ModelServer
from tests.rooms import LiveRoom
from tests.sidecar.stage import Stage
from tests.waiting import wait_until_sync

E = TypeVar("E", bound=KnownEvent)

TRIO: Final = ("claude", "codex", "gemini")
#: Longer than any CLI needs for an answer that is there at once, shorter than the long turns of the tests.
WARN_S: Final = 7.0
TIMEOUT_S: Final = 10.0
PATIENCE_S: Final = 180.0
_TAG: Final = re.compile(r"\[YOUR TURN #(t-\d+)\]")


#: Clocks of turns that run fast.
FAST: Final = {
    "CSP_TURN_WARN_MS": f"{WARN_S * 1000:.0f}",
    "CSP_TURN_TIMEOUT_MS": f"{TIMEOUT_S * 1000:.0f}",
}


class Trio(Stage):
    """One room with Claude Code, Codex and Gemini CLI."""

    def __init__(
        self,
        folder: Path,
        server: ModelServer,
        loopback: Loopback,
        *,
        clocks: Mapping[str, str],
        set_ups: Mapping[str, SetUp] | None = None,
    ) -> None:
        super().__init__(folder)
        self.room = LiveRoom(folder / "timed", env=clocks)
        self.server = server
        self.clis: dict[str, RealCli] = {
            name: bring_up(name, server, loopback, folder, (set_ups or {}).get(name)) for name in TRIO
        }

    def sit_down(self, *options: str) -> None:
        """Start all in the order of their turns; wait until each has said that it is idle."""
        for name, cli in self.clis.items():
            self.seat(name, cli.argv, *options, env=cli.env, cwd=cli.cwd)
        wait_until_sync(lambda: self._have_been_idle() >= set(self.clis), PATIENCE_S, "all idle")

    def _have_been_idle(self) -> set[str]:
        states = [event for event in self.room.journal() if isinstance(event, StateChanged)]
        return {event.sender for event in states if event.state is AgentState.IDLE}

    def rest(self) -> None:
        """Wait until nobody works, so that the next test begins with nothing under way."""
        wait_until_sync(lambda: not self.open_exchanges(), PATIENCE_S, "the end of all answers")
        for seat in self.seats.values():
            seat.wait_ready(timeout_s=PATIENCE_S)

    # --- the room --------------------------------------------------------------------------------

    def begin(self, mode: str, topic: str, **fields: object) -> str:
        """Begin a session; return its id."""
        body = {"mode": mode, "topic": topic, "agents": list(TRIO), **fields}
        return str(self.room.gateway.post("/mode", body)["orchestration"]["sessionId"])

    def mode(self) -> dict[str, Any]:
        view: dict[str, Any] = self.room.gateway.get("/mode")
        return view

    def wait_end(self, session: str, timeout_s: float = PATIENCE_S) -> dict[str, Any]:
        """Return the session as it is shown after its end."""
        try:
            wait_until_sync(lambda: self.mode()["status"] == "ended", timeout_s, f"the end of {session}")
        except AssertionError as error:
            screens = "\n".join(seat.screen() for seat in self.seats.values())
            raise AssertionError(f"{error}: {self.mode()}\n{screens}") from None
        view = self.mode()
        assert view["sessionId"] == session
        return view

    def events(self, session: str, *kinds: type[E]) -> list[E]:
        """Return what the journal has of a session, of these kinds."""
        return [
            event
            for event in self.room.journal()
            if isinstance(event, kinds) and getattr(event, "session_id", None) == session
        ]

    def as_agent(self, name: str) -> GatewayClient:
        """Return a client with the agent's own token."""
        return GatewayClient(self.room.url, self.token_of(name))

    def token_of(self, name: str) -> str:
        run = SidecarRecord.load(self.seats[name].folder)
        assert run is not None
        return run.token

    # --- the models ------------------------------------------------------------------------------

    def asked(self, topic: str, client: str) -> list[str]:
        """Return the prompts that reached a model with this topic in them."""
        return [prompt for prompt in self.server.prompts(client) if topic in prompt]

    def open_exchanges(self, client: str = "") -> list[Exchange]:
        """Return the answers that are under way."""
        return [one for one in self.server.exchanges(client, "main") if one.ended == "open"]

    def wait_at_work(self, topic: str, *clients: str) -> None:
        """Wait until the models of these clients are writing about the topic."""

        def at_work() -> set[str]:
            writing = [one for one in self.open_exchanges() if topic in one.ask.governing and one.blocks]
            return {one.client for one in writing}

        wait_until_sync(lambda: at_work() >= set(clients), PATIENCE_S, f"work on {topic}")


@contextlib.contextmanager
def trio(folder: Path, *, reaches_room: bool = False) -> Iterator[Trio]:
    """Bring the three up with fast clocks; all is gone at the end.

    What they start themselves may reach the room's gateway.
    """
    loopback = Loopback()
    with (
        loopback,
        ModelServer(listener=loopback.listener) as server,
        Trio(folder / "stage", server, loopback, clocks=FAST) as stage,
        passage(loopback, stage.room.port) if reaches_room else contextlib.nullcontext(),
    ):
        stage.sit_down()
        yield stage


def when(*marks: str, client: str = "", reply: Iterable[Part] | str) -> Rule:
    """Answer a prompt that has all these marks in it."""
    parts = [Text(text=reply)] if isinstance(reply, str) else list(reply)
    return Rule(match=lambda text: all(mark in text for mark in marks), reply=parts, client=client)


def plan_of(agent: str) -> str:
    """Return what an agent proposes in a vote."""
    return f"The plan of the {len(agent)}-letter kind, number {TRIO.index(agent)}."


def votes(topic: str, voter: str, choices: Sequence[str | None]) -> list[Rule]:
    """Vote in each ballot for the plan of somebody, whatever its letter is; for None there is no answer."""
    ballots: list[str] = []

    def is_ballot(text: str, number: int, mark: str) -> bool:
        tag = _TAG.match(text)
        if tag is None or topic not in text or "Vote on the proposals" not in text:
            return False
        if tag[1] not in ballots:
            ballots.append(tag[1])
        return ballots.index(tag[1]) == number and mark in text

    def rule(number: int, mark: str, reply: Part) -> Rule:
        return Rule(match=lambda text: is_ballot(text, number, mark), reply=[reply], client=voter)

    rules = []
    for number, choice in enumerate(choices):
        if choice is None:
            rules.append(rule(number, "", Pause(seconds=600)))
            continue
        for label in "ABC":
            text = f"I read them all.\n\nVOTE: [{label}]\nREASON: {voter} likes number {TRIO.index(choice)}"
            rules.append(rule(number, f"Proposal {label}:\n{plan_of(choice)}", Text(text=text)))
    return rules
