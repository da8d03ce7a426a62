"""Random histories of agents in several sessions at once, some of them sealed.

Every text that anybody gives the room, in whichever field, holds a word of its own, with who said it where.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from csp.errors import CspError
from csp.protocol.enums import (
    ALL,
    HUMAN,
    AgentId,
    AgentState,
    DeliverKind,
    DeliveryState,
    Ending,
    HeldReason,
    JoinRole,
    MessageId,
    ParticipantKind,
    SessionAction,
    SessionId,
)
from csp.protocol.events import KnownEvent
from csp.protocol.notes import ROOM_BOARD
from csp.protocol.requests import Dialog, Handoff, Usage
from csp.protocol.session_parts import Limits
from csp.room.commands import (
    AnswerQuery,
    AnyCommand,
    CancelMessage,
    CastVote,
    Collaborate,
    ExtendTurn,
    Join,
    PostReply,
    Rejoin,
    ReportDelivery,
    RoomRules,
    Send,
    SetMode,
    SetState,
    Steer,
    Stop,
    Summarise,
    Tick,
    WriteNote,
)
from csp.room.decide import decide
from csp.room.orchestrator import log_text
from csp.room.room_reducer import replay
from csp.room.room_state import Room
from csp.room.sessions.session_state import Turn
from csp.room.sessions.steering import next_deadline
from csp.room.visibility import is_visible_to
from tests.room.histories import Dice
from tests.room.playing import PROMPTS

STEP_BYTES: Final = 12
START: Final = 1_700_000_000.0
RULES: Final = RoomRules(prompts=PROMPTS, limits=Limits(turns=60))
THREADS: Final = ("default", "dev", "ops")
MODES: Final = ("debate", "consensus", "consensus", "autopilot", "round_robin", "collaborate")
TEAMS: Final = (
    ("gpt", "qwen"),
    ("claude", "gpt", "qwen"),
    ("codex", "gpt"),
    ("codex", "qwen", "orchestrator"),
    ("claude", "codex"),
    ("gpt", "codex", "claude", "qwen"),
)
MEMBERS: Final = (
    Join(name="claude"),
    Join(name="codex"),
    Join(name="gpt", kind=ParticipantKind.API),
    Join(name="qwen", kind=ParticipantKind.API),
    Join(name="mallory"),
    Join(name="orchestrator", role=JoinRole.ORCHESTRATOR),
)
#: What a reply or a remark may end with; `{0}` is another word of the same agent.
ENDS: Final = (
    *("", "", "\n@send.codex {0}", "\n@all {0}", "\n@send.mallory {0}", "\n@working {0}", "\n@query.log 5"),
    *("\nVOTE: [A]\nREASON: {0}", "\nVOTE: [B]", "\n@handoff.codex {0}", "\n@handoff.gpt {0}", "\nAGREE"),
)


class Word(NamedTuple):
    """A word that was said; `seals` are the phases in which its author must keep it to itself."""

    text: str
    author: AgentId
    seals: dict[SessionId, int]

    def is_sealed(self, room: Room) -> bool:
        known = [(room.sessions.by_id.get(session), phase) for session, phase in self.seals.items()]
        return any(one and not one.is_over and one.stage.number == phase for one, phase in known)


class Step(NamedTuple):
    command: AnyCommand
    events: list[KnownEvent]
    room: Room
    journal: list[KnownEvent]
    words: list[Word]


class Talkers:
    """Make up commands full of words."""

    def __init__(self) -> None:
        self.words: list[Word] = []
        self.journal: list[KnownEvent] = []
        self.turns: list[Turn] = []

    def word(self, room: Room, author: AgentId, session: SessionId | None = None) -> str:
        """Make a word; one that is said in a turn belongs to the session of that turn alone."""
        live = [one for one in room.sessions.by_id.values() if not one.is_over and one.stage.is_sealed]
        seals = {
            one.id: one.stage.number for one in live if author in one.agents and session in (None, one.id)
        }
        self.words.append(Word(f"w{len(self.words)}z", author, seals))
        return self.words[-1].text

    def command(self, room: Room, dice: Dice) -> AnyCommand:
        live = [turn for one in room.sessions.live() for turn in one.turns.values()]
        self.turns += [turn for turn in live if turn not in self.turns]
        return dice.pick(_WISHES)(self, room, dice)

    def agent(self, room: Room, dice: Dice) -> AgentId:
        return dice.pick(list(room.participants))

    # --- one wish each ---

    def start(self, room: Room, dice: Dice) -> AnyCommand:
        return SetMode(
            sender=HUMAN,
            mode=dice.pick(MODES),
            topic="a topic",
            agents=dice.pick(TEAMS),
            rounds=dice.pick([2, 1, 3]),
            ballot=dice.pick([True, False]),
            soft_turns=dice.pick([False, False, True]),
            thread=dice.pick(THREADS),
        )

    def reply(self, room: Room, dice: Dice) -> AnyCommand:
        open_turns = [(one, turn) for one in room.sessions.live() for turn in one.turns.values()]
        if not open_turns:
            return self.start(room, dice)
        session, turn = dice.pick(open_turns)
        end = dice.pick(ENDS)
        # A message goes to others beside the session; the rest is part of the reply.
        is_message = end.startswith(("\n@send", "\n@all"))
        more = self.word(room, turn.agent, None if is_message else session.id) if "{0}" in end else ""
        if is_message:
            # The reply has the line in it as well, and belongs to its session.
            self.words[-1] = self.words[-1]._replace(seals=self._both(room, turn.agent, session.id))
        is_broken = dice.pick([False, False, False, True])
        return PostReply(
            sender=turn.agent,
            text=self.word(room, turn.agent, session.id) + end.format(more),
            turn=turn.id,
            activity=dice.pick([False, False, False, True]),
            ending=Ending.FAILED if is_broken else Ending.DONE,
            reason=self.word(room, turn.agent, session.id) if is_broken else "",
            usage=dice.pick([None, Usage(input=5, output=5, model=self.word(room, turn.agent, session.id))]),
        )

    def _both(self, room: Room, agent: AgentId, session: SessionId) -> dict[SessionId, int]:
        """Return what seals a line that stands in a reply and is sent as well: what seals the reply."""
        found = room.sessions.by_id[session]
        return {session: found.stage.number} if found.stage.is_sealed and agent in found.agents else {}

    def talk(self, room: Room, dice: Dice) -> AnyCommand:
        """Say something beside all turns, or as an answer to a message."""
        agent = self.agent(room, dice)
        queue = list(room.unfinished(room.participants[agent].queue))
        plain: list[MessageId | None] = [one.id for one in queue if one.kind is DeliverKind.MESSAGE]
        end = dice.pick(ENDS).format(self.word(room, agent))
        late = [turn.id for turn in self.turns if turn.agent == agent]
        task = Handoff(to="codex", task=self.word(room, agent)) if dice.pick([False, False, True]) else None
        is_late = bool(late) and dice.pick([False, False, False, True])
        session = next(
            (one.id for one in room.sessions.live() if is_late and late[-1] in _ids(one.turns)), None
        )
        return PostReply(
            sender=agent,
            text=self.word(room, agent, session) + ("" if is_late else end),
            turn=late[-1] if is_late else None,
            reply_to=None if is_late else dice.pick([*plain, None]),
            handoff=None if is_late else task,
            activity=dice.pick([False, False, True]),
            thread=dice.pick(THREADS),
        )

    def send(self, room: Room, dice: Dice) -> AnyCommand:
        sender = self.agent(room, dice)
        to = dice.pick([ALL, ALL, *room.participants])
        text = self.word(room, sender) + dice.pick(["", "", f"\n@working {self.word(room, sender)}"])
        return Send(sender=sender, to=to, text=text, thread=dice.pick(THREADS), ttl_s=600.0)

    def allstop(self, room: Room, dice: Dice) -> AnyCommand:
        boss = AgentId("orchestrator")
        # The word itself must stand alone, but whatever is no letter may stand beside it.
        # Longer than the times and checksums of a line, so that it cannot be found in one of them.
        number = str(987_654_321_000 + len(self.words))
        self.word(room, boss)
        self.words[-1] = self.words[-1]._replace(text=number)
        return Send(sender=boss, to=ALL, text=f"Allstop {number}", thread=dice.pick(THREADS))

    def set_state(self, room: Room, dice: Dice) -> AnyCommand:
        agent = self.agent(room, dice)
        states = [AgentState.BUSY, AgentState.NEEDS_APPROVAL, AgentState.IDLE, AgentState.OFFLINE]
        dialog = dice.pick([None, Dialog(tool="Bash", arguments=self.word(room, agent))])
        return SetState(agent=agent, state=dice.pick(states), detail=self.word(room, agent), dialog=dialog)

    def come_back(self, room: Room, dice: Dice) -> AnyCommand:
        agent = self.agent(room, dice)
        return Rejoin(agent=agent, capabilities=[self.word(room, agent)])

    def report(self, room: Room, dice: Dice) -> AnyCommand:
        agent = self.agent(room, dice)
        queue = list(room.participants[agent].queue)
        if not queue:
            return Tick()
        state = dice.pick([DeliveryState.CONFIRMED, DeliveryState.FAILED, DeliveryState.HELD])
        reason = HeldReason.BUSY if state is DeliveryState.HELD else self.word(room, agent)
        return ReportDelivery(agent=agent, message=dice.pick(queue), state=state, reason=reason)

    def keep(self, room: Room, dice: Dice) -> AnyCommand:
        agent = self.agent(room, dice)
        return ExtendTurn(agent=agent, note=self.word(room, agent))

    def vote(self, room: Room, dice: Dice) -> AnyCommand:
        agent = self.agent(room, dice)
        ballots = [one.id for one in room.sessions.live() if agent in one.turns]
        session = dice.pick(ballots) if ballots else None
        reason = self.word(room, agent, session)
        return CastVote(agent=agent, label=dice.pick(["A", "B"]), reason=reason, session=session)

    def note(self, room: Room, dice: Dice) -> AnyCommand:
        agent = self.agent(room, dice)
        boards: list[str | None] = [None, *room.sessions.by_id]
        tags = (self.word(room, agent),)
        return WriteNote(sender=agent, text=self.word(room, agent), session=dice.pick(boards), tags=tags)

    def summarise(self, room: Room, dice: Dice) -> AnyCommand:
        by = self.agent(room, dice)
        return Summarise(by=by, session=ROOM_BOARD, text="sum it up", stands_for=(MessageId("n-1"),))

    def lead(self, room: Room, dice: Dice) -> AnyCommand:
        """Begin something as the orchestrator, which may be in a sealed phase itself."""
        boss = AgentId("orchestrator")
        topic, team, thread = self.word(room, boss), ("claude", "codex"), dice.pick(THREADS)
        if dice.pick([True, False]):
            # In place of a session that it is in, its words come after the end of that.
            before = room.sessions.live_in(thread)
            if before is not None:
                self.words[-1].seals.pop(before.id, None)
            return SetMode(sender=boss, mode="round_robin", topic=topic, agents=team, thread=thread)
        said = self.word(room, boss)
        return Collaborate(sender=boss, objective=topic, agents=team, said=said)

    def tell(self, room: Room, dice: Dice) -> AnyCommand:
        for key, query in room.queries.items():
            known = [one for one in self.journal if is_visible_to(one, query.agent, room.sessions)]
            return AnswerQuery(query=key, text=log_text(known[-5:]))
        return Tick()

    def steer(self, room: Room, dice: Dice) -> AnyCommand:
        live = list(room.sessions.live())
        if not live:
            return self.start(room, dice)
        session = dice.pick(live)
        action = dice.pick(
            [SessionAction.KICK, SessionAction.SKIP, SessionAction.PAUSE, SessionAction.RESUME]
        )
        return Steer(sender=HUMAN, session=session.id, action=action, agent=dice.pick(session.agents))

    def cancel(self, room: Room, dice: Dice) -> AnyCommand:
        return CancelMessage(message=dice.pick(list(room.messages) or ["m-1"]))

    def stop(self, room: Room, dice: Dice) -> AnyCommand:
        return Stop(sender=HUMAN, thread=dice.pick(THREADS))

    def tick(self, room: Room, dice: Dice) -> AnyCommand:
        return Tick()


def _ids(turns: dict[AgentId, Turn]) -> list[str]:
    return [turn.id for turn in turns.values()]


_WEIGHTS: Final[dict[Callable[[Talkers, Room, Dice], AnyCommand], int]] = {
    Talkers.start: 8,
    Talkers.reply: 14,
    Talkers.talk: 6,
    Talkers.send: 6,
    Talkers.set_state: 4,
    Talkers.come_back: 2,
    Talkers.report: 5,
    Talkers.keep: 3,
    Talkers.vote: 2,
    Talkers.note: 4,
    Talkers.summarise: 2,
    Talkers.lead: 2,
    Talkers.allstop: 1,
    Talkers.tell: 3,
    Talkers.steer: 2,
    Talkers.cancel: 1,
    Talkers.stop: 1,
    Talkers.tick: 2,
}
_WISHES: Final = [wish for wish, weight in _WEIGHTS.items() for _ in range(weight)]


def play_sealed(script: bytes) -> Iterator[Step]:
    """Play a script; yield the room after each step with everything that was ever said in it."""
    room, clock, talkers = Room(), START, Talkers()
    opening: list[Any] = [
        *MEMBERS,
        SetMode(
            sender=HUMAN, mode="consensus", topic="a", agents=("gpt", "qwen", "claude"), thread="default"
        ),
        SetMode(sender=HUMAN, mode="debate", topic="b", agents=("gpt", "codex"), rounds=2, thread="dev"),
    ]
    for command in opening:
        events = decide(room, command, clock, RULES)
        talkers.journal += events
        room = replay(events, room)
    for at in range(0, len(script), STEP_BYTES):
        dice = Dice(script[at : at + STEP_BYTES])
        clock += dice.pick([1.0, 0.0, 30.0])
        command = talkers.command(room, dice)
        deadline = next_deadline(room, RULES)
        if isinstance(command, Tick) and deadline is not None and dice.pick([False, True]):
            clock = max(clock, deadline)
        try:
            events = decide(room, command, clock, RULES)
        except CspError:
            continue
        talkers.journal += events
        room = replay(events, room)
        yield Step(command, events, room, talkers.journal, talkers.words)
