"""The tests of the way from a command to its events."""

from typing import Final, get_args

import pytest

from csp.errors import Refused
from csp.protocol.enums import (
    ALL,
    HUMAN,
    AgentId,
    AgentState,
    ControlVerb,
    DeliveryState,
    MessageId,
    ParticipantKind,
    SessionAction,
)
from csp.protocol.events import type_of
from csp.protocol.notes import Provider
from csp.protocol.notices import NoticeCode
from csp.protocol.review_messages import (
    MAILBOX,
    ExecutionUpdate,
    RunAction,
    RunContext,
    RunRole,
    RunTerms,
    SessionAck,
)
from csp.room.commands import (
    ActOnRun,
    AllowCommand,
    AnswerQuery,
    AnyCommand,
    CancelMessage,
    CastVote,
    CheckRun,
    Collaborate,
    CompactBoard,
    ControlAgent,
    DeliverRun,
    DisallowCommand,
    ExtendTurn,
    HandOffTurn,
    Join,
    Leave,
    NextTurn,
    Notice,
    PostReply,
    PrepareRun,
    Prune,
    RecordCall,
    RedactMessage,
    Rejoin,
    ReleaseMessage,
    Remove,
    ReportDelivery,
    SayInRun,
    Send,
    SetBoardProvider,
    SetMode,
    SetState,
    Slept,
    Steer,
    Stop,
    Summarise,
    Tick,
    WriteNote,
)
from csp.room.decide import HANDLERS, decide
from csp.room.room_state import dump
from tests.room.live import CLAUDE, CODEX, LiveRoom

VOTER, OTHER, LONER = AgentId("voter"), AgentId("other"), AgentId("loner")
#: The number of the approval rule in `a_room`.
RULE: Final = 51
# What each command causes in the room of `a_room`: claude is there with m-3 queued, codex has left,
# m-5 is held by the loop guard, e-8 is a question of claude, s-9 asks codex for its one step; a ballot waits
# for the vote of voter, a turn for the reply of loner.
CAUSED: list[tuple[AnyCommand, list[str]]] = [
    (Join(name="gemini"), ["joined"]),
    (Rejoin(agent=CODEX), ["joined"]),
    (Leave(agent=CLAUDE, reason="closed"), ["left"]),
    (Remove(agent=CLAUDE), ["delivery", "delivery", "left"]),
    (Send(sender=HUMAN, to=CODEX, text="hi"), ["human_message"]),
    (PostReply(sender=CLAUDE, text="hi"), ["agent_response"]),
    (AnswerQuery(query=MessageId("e-8"), text="[CSP: nothing]"), ["answer", "system"]),
    (ReportDelivery(agent=CLAUDE, message="m-3", state=DeliveryState.TYPED), ["delivery"]),
    (SetState(agent=CLAUDE, state=AgentState.BUSY), ["state"]),
    (ControlAgent(agent=CLAUDE, verb=ControlVerb.PAUSE), ["state", "control"]),
    (AllowCommand(agent=CLAUDE, pattern="make test"), ["state"]),
    (DisallowCommand(number=RULE), ["state"]),
    (RecordCall(key="call-1", answer="claude"), ["call"]),
    (CancelMessage(message="m-3"), ["delivery"]),
    (ReleaseMessage(message="m-5"), ["delivery"]),
    (RedactMessage(message="m-3"), ["delivery", "redacted"]),
    (Prune(before=3), ["pruned"]),
    (Notice(words=NoticeCode.VOTE_TIED(), target=ALL), ["system"]),
    (
        SetMode(sender=HUMAN, mode="single", agents=("claude",)),
        ["mode", "system", "mode", "turn_signal", "system"],
    ),
    (
        Collaborate(sender=HUMAN, objective="x", agents=("claude",)),
        ["mode", "system", "system", "mode", "turn_signal", "system"],
    ),
    (NextTurn(thread="dev"), ["delivery", "turn", "mode", "system", "system"]),
    (ExtendTurn(agent=CODEX), ["turn"]),
    (CastVote(agent=VOTER, label="a"), ["vote", "turn"]),
    (HandOffTurn(agent=LONER, to="loner", task="go on"), ["turn", "turn"]),
    (Stop(sender=HUMAN, thread="dev"), ["delivery", "turn", "mode", "system", "system"]),
    (Steer(sender=HUMAN, session="s-9", action=SessionAction.PAUSE), ["mode", "system"]),
    (
        SayInRun(sender=MAILBOX, run="r", body=SessionAck(), role=RunRole.REVIEWER),
        ["run.message", "run.phase", "mode"],
    ),
    (PrepareRun(run="x", context=RunContext()), []),
    (CheckRun(run="x", cycle=1, step=1, update=ExecutionUpdate(step="s")), []),
    (DeliverRun(run="x"), []),
    (
        ActOnRun(sender=HUMAN, run="r", action=RunAction.HALT),
        ["run.phase", "mode", "system"],
    ),
    (WriteNote(sender=CLAUDE, text="look here"), ["note"]),
    (
        Summarise(by="claude", session="room", text="sum it up", stands_for=(MessageId("n-1"),)),
        ["answer", "board"],
    ),
    (SetBoardProvider(session="room", provider=Provider.OPENAI, problem="there"), ["board", "system"]),
    # The board has no summary, so nothing may be taken off it.
    (CompactBoard(session="room", upto=1, freed=1), []),
    (Tick(), ["delivery", "system"]),
    (Slept(seconds=60.0), ["mode", "system"] * 4),
]
COMMANDS = [command for command, _ in CAUSED]


@pytest.fixture
def a_room(monkeypatch: pytest.MonkeyPatch) -> LiveRoom:
    monkeypatch.setattr("csp.room.messages.MAX_HOPS", 0)
    live = LiveRoom("claude", "codex")
    live.say(HUMAN, CLAUDE, ttl_s=0.0)
    live.do(Leave(agent=CODEX, reason="closed"))
    live.say(CODEX, CLAUDE)
    live.do(PostReply(sender=CLAUDE, text="@query.log"))
    live.do(SetMode(sender=HUMAN, mode="round_robin", steps=1, agents=("codex",), thread="dev"))
    live.do(
        SetMode(
            sender=HUMAN,
            mode="review",
            topic="x",
            agents=("mailbox", "mailbox"),
            terms=RunTerms(run_id="r"),
            thread="run",
        )
    )
    live.do(PrepareRun(run="r", context=RunContext()))
    for name in (VOTER, OTHER, LONER):
        live.do(Join(name=name, kind=ParticipantKind.API))
    live.do(SetMode(sender=HUMAN, mode="single", agents=(LONER,), thread="alone"))
    live.do(SetMode(sender=HUMAN, mode="consensus", agents=(VOTER, OTHER), thread="vote"))
    for agent in (VOTER, OTHER):
        (session,) = live.room.sessions.live_with(agent)
        live.do(PostReply(sender=agent, text=f"proposal of {agent}", turn=session.turns[agent].id))
    live.do(AllowCommand(agent=CLAUDE, pattern="pytest"))
    return live


@pytest.mark.parametrize(("command", "types"), CAUSED, ids=lambda value: type(value).__name__)
def test_command_causes_these_events(a_room: LiveRoom, command: AnyCommand, types: list[str]) -> None:
    assert [type_of(event) for event in a_room.do(command)] == types


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: type(command).__name__)
def test_deciding_changes_nothing(a_room: LiveRoom, command: AnyCommand) -> None:
    before = dump(a_room.room)
    decide(a_room.room, command, a_room.now)

    assert dump(a_room.room) == before


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: type(command).__name__)
def test_deciding_twice_gives_the_same(a_room: LiveRoom, command: AnyCommand) -> None:
    first = decide(a_room.room, command, a_room.now)

    assert decide(a_room.room, command, a_room.now) == first


def test_table_has_every_command() -> None:
    assert [type(command) for command in COMMANDS] == list(get_args(AnyCommand))


def test_every_command_has_a_handler() -> None:
    assert set(HANDLERS) == set(get_args(AnyCommand))


@pytest.mark.parametrize(
    "command",
    [
        Rejoin(agent=CLAUDE),
        Leave(agent=CLAUDE, reason="closed"),
        Remove(agent=CLAUDE),
        Send(sender=HUMAN, to=CLAUDE, text="hi"),
        ReportDelivery(agent=CLAUDE, message="m-1", state=DeliveryState.TYPED),
        SetState(agent=CLAUDE, state=AgentState.BUSY),
        ControlAgent(agent=CLAUDE, verb=ControlVerb.PAUSE),
        CancelMessage(message="m-1"),
        ReleaseMessage(message="m-1"),
    ],
    ids=lambda command: type(command).__name__,
)
def test_whom_or_what_nobody_knows_is_not_found(command: AnyCommand) -> None:
    error = LiveRoom().refuse(command, Refused)

    assert error.status == 404


def test_notice_is_the_rooms_own_word() -> None:
    (event,) = LiveRoom().do(Notice(words=NoticeCode.ALLSTOP_IDLE(thread="x"), target=HUMAN))

    text = "Allstop: no session is running in thread x."
    assert (event.sender, event.target, event.text) == ("system", "human", text)
