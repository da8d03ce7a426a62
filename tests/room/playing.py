"""A session played by hand: a mode, replies, the clock."""

from typing import Any, TypeVar

from csp.errors import CspError
from csp.protocol.enums import HUMAN, AgentId, DeliveryState, JoinRole, ParticipantKind, SessionAction
from csp.protocol.events import Event, KnownEvent, NoticePosted, TurnSignal
from csp.room.commands import AnyCommand, Join, PostReply, RoomRules, SetMode, Steer, Tick
from csp.room.sessions.session_state import Session, Turn
from csp.room.sessions.steering import next_deadline
from tests.room.live import CLAUDE, CODEX, GEMINI, LiveRoom

E = TypeVar("E", bound=Event)
S = DeliveryState
BOSS = AgentId("orchestrator")
#: Every template shows all there is, under its own name.
NAMES = (
    *("single", "collaborate", "autopilot", "round_robin", "orchestrate", "assist", "debate", "respond"),
    *("consensus", "ballot", "synthesise", "repair_vote", "repair_envelope"),
    *("build_plan", "build_step", "build_end", "review_ack", "review_plan", "review_watch", "review_work"),
    "repair_review",
)
_MORE = dict.fromkeys(
    ("build_", "review", "repair"),
    " run={run} plan={plan} feedback={feedback} findings={findings} work={work} seen={seen} why={why}"
    " place={place} test={test} problem={problem}",
)
PROMPTS = (
    {
        name: f"<{name}> {{label}} goal={{goal}} window={{window}} positions={{positions}} "
        "proposals={proposals} labels={labels} format={format}" + _MORE.get(name[:6], "")
        for name in NAMES
    }
    | {"envelope": "JSON", "message": "JSON only", "lines": "LINES", "last_line": "END", "words": "WORDS"}
    | {
        "builder": "BUILDER",
        "reviewer": "REVIEWER",
    }
)
RULES = RoomRules(prompts=PROMPTS)


class Play(LiveRoom):
    """A room of agents with one session in the default thread."""

    def __init__(
        self, *agents: AgentId, rules: RoomRules = RULES, kind: ParticipantKind = ParticipantKind.CLI
    ) -> None:
        super().__init__(rules=rules)
        for agent in agents or (CLAUDE, CODEX, GEMINI):
            self.do(Join(name=agent, kind=kind))

    def join_boss(self) -> None:
        self.do(Join(name=BOSS, role=JoinRole.ORCHESTRATOR))

    def start(self, mode: str, **options: Any) -> list[KnownEvent]:
        return self.do(SetMode(sender=HUMAN, mode=mode, topic=options.pop("topic", "tabs"), **options))

    @property
    def session(self) -> Session:
        found = self.room.sessions.newest_in("default")
        assert found is not None
        return found

    @property
    def waiting(self) -> tuple[AgentId, ...]:
        return self.session.waiting_for

    @property
    def ended(self) -> str | None:
        return self.session.reason

    def turn(self, agent: AgentId) -> Turn:
        return self.session.turns[agent]

    def prompt(self, agent: AgentId) -> str:
        """Return what an agent was asked last."""
        return self.asks(agent)[-1].text

    def asks(self, agent: AgentId) -> list[TurnSignal]:
        return [event for event in self.all(TurnSignal) if event.target == agent]

    def reply(self, agent: AgentId, text: str = "words", **fields: Any) -> list[KnownEvent]:
        fields = {"turn": self.turn(agent).id, **fields} if "turn" not in fields else fields
        return self.do(PostReply(sender=agent, text=text, **fields))

    def reply_all(self, text: str = "{0} speaks") -> None:
        """Let everybody who owes a reply give it, in the turn order."""
        for agent in self.waiting:
            self.reply(agent, text.format(agent))

    def deliver(
        self, agent: AgentId, state: DeliveryState = DeliveryState.CONFIRMED, reason: str = ""
    ) -> None:
        self.report(agent, self.turn(agent).message, state, reason)

    def steer(self, action: SessionAction, **fields: Any) -> list[KnownEvent]:
        return self.do(Steer(sender=HUMAN, session=self.session.id, action=action, **fields))

    def wait(self, seconds: float) -> list[KnownEvent]:
        self.now += seconds
        return self.do(Tick())

    def deadline(self) -> float | None:
        return next_deadline(self.room, self.rules)

    def all(self, kind: type[E]) -> list[E]:
        return [event for event in self.journal if isinstance(event, kind)]

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.all(NoticePosted)]

    def refused(self, command: AnyCommand) -> str:
        return self.refuse(command, CspError).message
