"""Random histories of a room, each a function of the bytes hypothesis draws.

STEP_BYTES of them are one step, and each choice in it takes one. So a history is drawn at once,
which is fast, and shrinks to fewer and simpler steps.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from hypothesis import strategies as st

from csp.errors import CspError
from csp.protocol.enums import (
    ALL,
    HUMAN,
    AgentId,
    AgentState,
    Capabilities,
    ControlVerb,
    DeliveryState,
    Ending,
    HeldReason,
    JoinRole,
    MessageId,
    ParticipantKind,
)
from csp.protocol.events import KnownEvent
from csp.protocol.notices import NoticeCode
from csp.protocol.requests import Handoff
from csp.room.commands import (
    AnswerQuery,
    AnyCommand,
    CancelMessage,
    ControlAgent,
    Join,
    Leave,
    Notice,
    PostReply,
    Prune,
    RedactMessage,
    Rejoin,
    ReleaseMessage,
    Remove,
    ReportDelivery,
    Send,
    SetState,
    Tick,
)
from csp.room.decide import decide
from csp.room.messages import next_deadline
from csp.room.room_draft import RoomDraft
from csp.room.room_reducer import replay
from csp.room.room_state import Room, dump, load

T = TypeVar("T")
S = DeliveryState

STEP_BYTES: Final = 14
MAX_STEPS: Final = 70
START: Final = 1_700_000_000.0
TTL_S: Final = 60.0
#: What an answer ends with: mostly nothing, sometimes commands, of which each is said once.
SPOKEN: Final = (
    *[""] * 6,
    "\n@send.codex <call {0}>",
    "\n\n@all <call {0}>\n@send.claude <call {0}b>",
    "\n@query.log 3",
    "\n@send.mallory <call {0}>\n@sned.codex x",
    "\n```\n@all <hidden {0}>\n```",
)
NAMES: Final = ("claude", "codex", "gemini", "Claude!")
PAUSES_S: Final = (*[0.0, 0.0, 0.25, 1.0, 1.0, 2.0] * 2, 5.0, 31.0)
#: How far the clock is off for one step.
ERRORS_S: Final = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -45.0, -100_000.0)


Decide = Callable[[Room, AnyCommand, float], list[KnownEvent]]


class Step(NamedTuple):
    """One command with what came of it, and the room after that; a refused one caused nothing."""

    command: AnyCommand
    events: list[KnownEvent]
    refused: CspError | None
    room: Room


class Dice:
    """Turn the bytes of one step into choices."""

    def __init__(self, data: bytes) -> None:
        self._bytes = iter(data)

    def pick(self, options: Sequence[T]) -> T:
        return options[next(self._bytes, 0) % len(options)]


class _Player:
    """Make up commands that mostly fit the room, and some that do not."""

    def __init__(self) -> None:
        self.count = 0
        self.reported: tuple[AgentId, MessageId] | None = None

    def command(self, room: Room, dice: Dice) -> AnyCommand:
        self.count += 1
        return dice.pick(_WISHES)(self, room, dice)

    def text(self) -> str:
        # Every text is said once, so a test can tell by it which message it sees.
        return f"<text {self.count}>" + "ü😀" * (self.count % 3)

    def agent(self, room: Room, dice: Dice) -> AgentId:
        return dice.pick([*list(room.participants) * 8, AgentId("mallory")])

    def speaker(self, room: Room, dice: Dice) -> AgentId:
        return dice.pick([*list(room.participants) * 2, HUMAN])

    def message(self, room: Room, dice: Dice) -> MessageId:
        """Return a message that is remembered, the newest most likely, or one that never was."""
        known = [*room.waiting, *room.messages][::-1]
        return dice.pick([*known[:3] * 4, *known * 3, MessageId("never")])

    def id(self, room: Room, dice: Dice) -> MessageId | None:
        """Return no id, a new one, one that is remembered, or one of the room's own."""
        fresh = MessageId(f"c{self.count}")
        known = [message for message in [*room.waiting, *room.messages] if message.startswith("c")]
        return dice.pick([*[None, fresh] * 6, *known[-2:], *known[:1], MessageId("m-1")])

    def reply_to(self, room: Room, dice: Dice) -> MessageId | None:
        return self.message(room, dice) if dice.pick([True, False]) else None

    # --- one wish each ---

    def join(self, room: Room, dice: Dice) -> AnyCommand:
        kind = dice.pick(
            [
                ParticipantKind.CLI,
                ParticipantKind.API,
                ParticipantKind.CLI,
                ParticipantKind.MCP,
                ParticipantKind.HUMAN,
            ]
        )
        role = dice.pick(list(JoinRole))
        return Join(name=dice.pick(NAMES), kind=kind, role=role, capabilities={"a": self.count})

    def come_back(self, room: Room, dice: Dice) -> AnyCommand:
        capabilities: list[Capabilities | None] = [None, ["x"], {"y": 0.5}]
        return Rejoin(agent=self.agent(room, dice), capabilities=dice.pick(capabilities))

    def leave(self, room: Room, dice: Dice) -> AnyCommand:
        return Leave(agent=self.agent(room, dice), reason="closed")

    def remove(self, room: Room, dice: Dice) -> AnyCommand:
        return Remove(agent=self.agent(room, dice))

    def send(self, room: Room, dice: Dice) -> AnyCommand:
        sender = self.speaker(room, dice)
        others = [agent for agent in room.participants if agent != sender]
        return Send(
            sender=sender,
            to=dice.pick([*others * 4, ALL, ALL, HUMAN, sender]),
            text=self.text(),
            reply_to=self.reply_to(room, dice),
            id=self.id(room, dice),
            urgent=dice.pick([False, True]),
            ttl_s=TTL_S,
        )

    def resend(self, room: Room, dice: Dice) -> AnyCommand:
        only = tuple(room.participants)[1:]
        return Send(sender=HUMAN, to=ALL, text=self.text(), thread="again", only=only, ttl_s=TTL_S)

    def answer(self, room: Room, dice: Dice) -> AnyCommand:
        asked = room.message(self.message(room, dice))
        recipients = list(asked.deliveries) * 5 if asked is not None else []
        return PostReply(
            sender=dice.pick([*recipients, self.speaker(room, dice)]),
            text=self.text() + dice.pick(SPOKEN).format(self.count),
            reply_to=asked.id if asked is not None else None,
            turn=dice.pick([None] * 9 + ["t-1"]),
            handoff=dice.pick([None, Handoff(to="codex", task="look")]),
            id=self.id(room, dice),
            ttl_s=TTL_S,
            activity=dice.pick([False, False, False, True]),
            ending=dice.pick([Ending.DONE, Ending.DONE, Ending.FAILED]),
        )

    def tell(self, room: Room, dice: Dice) -> AnyCommand:
        query = dice.pick([*list(room.queries) * 4, MessageId("never")])
        return AnswerQuery(query=query, text=f"[CSP: told {self.count}]", ttl_s=TTL_S)

    def report(self, room: Room, dice: Dice) -> AnyCommand:
        """Report on what waits, on what was remembered, or once more on the same as last time."""
        if self.reported is None or dice.pick([True, False, True]):
            everybody = room.participants.values()
            waiting = [(one.id, message) for one in everybody for message in [*one.queue, *one.controls]]
            received = [
                (agent, message.id) for message in room.messages.values() for agent in message.deliveries
            ]
            nonsense = (self.agent(room, dice), self.message(room, dice))
            self.reported = dice.pick([*waiting * 3, *received, nonsense])
        agent, message = self.reported
        return ReportDelivery(
            agent=agent,
            message=message,
            state=dice.pick([*DeliveryState, *[S.TYPED, S.TYPED, S.TYPED, S.SUBMITTED, S.FAILED]]),
            reason=dice.pick([HeldReason.BUSY, HeldReason.STUCK, HeldReason.DRAFT, HeldReason.LOOP]),
        )

    def set_state(self, room: Room, dice: Dice) -> AnyCommand:
        until = dice.pick([None, START])
        return SetState(agent=self.agent(room, dice), state=dice.pick(list(AgentState)), until=until)

    def control(self, room: Room, dice: Dice) -> AnyCommand:
        choice = dice.pick([None, 2])
        return ControlAgent(agent=self.agent(room, dice), verb=dice.pick(list(ControlVerb)), choice=choice)

    def cancel(self, room: Room, dice: Dice) -> AnyCommand:
        return CancelMessage(message=self.message(room, dice))

    def release(self, room: Room, dice: Dice) -> AnyCommand:
        held = [
            m.id for m in room.messages.values() if any(d.reason == "loop" for d in m.deliveries.values())
        ]
        return ReleaseMessage(message=dice.pick([*held, self.message(room, dice)]))

    def redact(self, room: Room, dice: Dice) -> AnyCommand:
        return RedactMessage(message=self.message(room, dice))

    def prune(self, room: Room, dice: Dice) -> AnyCommand:
        return Prune(before=dice.pick([1, room.seq // 2, room.seq, room.seq + 1]))

    def notice(self, room: Room, dice: Dice) -> AnyCommand:
        return Notice(words=NoticeCode.VOTE_TIED(), target=dice.pick([ALL, HUMAN]))

    def tick(self, room: Room, dice: Dice) -> AnyCommand:
        return Tick()


_Wish = Callable[[_Player, Room, Dice], AnyCommand]
_WEIGHTS: Final[dict[_Wish, int]] = {
    _Player.send: 8,
    _Player.answer: 6,
    _Player.tell: 2,
    _Player.report: 8,
    _Player.join: 3,
    _Player.tick: 2,
    _Player.control: 3,
    _Player.leave: 2,
    _Player.come_back: 2,
    _Player.set_state: 1,
    _Player.resend: 1,
    _Player.cancel: 1,
    _Player.release: 2,
    _Player.redact: 1,
    _Player.remove: 1,
    _Player.prune: 1,
    _Player.notice: 1,
}
_WISHES: Final = [wish for wish, weight in _WEIGHTS.items() for _ in range(weight)]


def histories() -> st.SearchStrategy[bytes]:
    """Draw the script of a history."""
    return st.integers(0, MAX_STEPS).flatmap(
        lambda steps: st.binary(min_size=steps * STEP_BYTES, max_size=steps * STEP_BYTES)
    )


def play(script: bytes, decide: Decide = decide) -> Iterator[Step]:
    """Play a script in a room of three agents; the room of a step is used up by the next."""
    room, clock, player = Room(), START, _Player()
    for name in NAMES[:3]:
        command: AnyCommand = Join(name=name)
        events = decide(room, command, clock)
        room = replay(events, room)
        yield Step(command, events, None, room)
    for at in range(0, len(script), STEP_BYTES):
        dice = Dice(script[at : at + STEP_BYTES])
        clock += dice.pick(PAUSES_S)
        error = dice.pick(ERRORS_S)
        command = player.command(room, dice)
        deadline = next_deadline(room)
        if isinstance(command, Tick) and deadline is not None and dice.pick([True, False]):
            clock, error = max(clock, deadline), 0.0
        events, refused = [], None
        try:
            events = decide(room, command, clock + error)
        except CspError as exc:
            refused = exc
        room = replay(events, room)
        yield Step(command, events, refused, room)


def journal_of(script: bytes) -> list[KnownEvent]:
    """Return all events of a script."""
    return [event for step in play(script) for event in step.events]


def assert_draft_is_replay(before: Room, draft: RoomDraft) -> None:
    """Check that the room of a draft, and the room that it leaves, is the given room after its events."""
    after = replay(draft.events, load(dump(before)))
    _assert_same(draft.room, after)
    again = RoomDraft(load(dump(before)), draft.now)
    for number, event in enumerate(draft.events):
        again.emit(event)
        if number % 3 == 0:
            # What nobody has looked at is applied when the room is taken over.
            assert again.room.seq == event.seq
    taken = again.take_over()
    assert type(taken) is Room
    _assert_same(taken, after)


def _assert_same(room: Room, expected: Room) -> None:
    for name in Room.__struct_fields__:
        assert getattr(room, name) == getattr(expected, name), name
    # The order counts as well: the oldest goes first.
    assert list(room.messages) == list(expected.messages)
    assert list(room.waiting) == list(expected.waiting)
    assert list(room.sessions.by_id) == list(expected.sessions.by_id)
    for agent, participant in expected.participants.items():
        assert list(room.participants[agent].queue) == list(participant.queue)
