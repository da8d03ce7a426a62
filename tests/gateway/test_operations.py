"""What a participant can do, by itself: every word reaches the room, every answer says what it made of it."""

from types import SimpleNamespace
from typing import Any

import pytest

from csp.errors import BadInput, NotFound, Refused
from csp.gateway import operations
from csp.gateway.auth import Caller
from csp.gateway.route_table import Call
from csp.protocol.enums import (
    HUMAN,
    SYSTEM,
    AgentId,
    AgentState,
    DeliveryState,
    Ending,
    MessageId,
    ReportedAgentState,
    ReportedState,
    SessionId,
    TurnId,
)
from csp.protocol.events import AgentResponse, HumanMessage, KnownEvent, LateReply, NoticePosted, TurnMoved
from csp.protocol.requests import (
    ControlDoneBody,
    DeliveryBody,
    Dialog,
    Handoff,
    MessageBody,
    OutputBody,
    StateBody,
    Usage,
    WorkingBody,
)
from csp.protocol.session_parts import TurnState
from csp.room.agent_text import Envelope, read_agent_text
from csp.room.chat_markdown import fenced_objects, read_lines
from csp.room.commands import ExtendTurn, PostReply, ReportDelivery, Send, SetState
from tests.gateway.asked import AGENT, CLAUDE, ROOM, Recorder

CODEX = AgentId("codex")
SETTINGS = SimpleNamespace(message_ttl_s=7.0, groups={})
M2 = MessageId("m-2")


def by(caller: Caller, body: Any) -> Call[Any, Any]:
    return Call(caller, {}, None, body)


def with_messages(**deliveries: tuple[str, ...]) -> Any:
    """Return a writer whose room has these messages with these recipients."""
    known = {
        name.replace("_", "-"): SimpleNamespace(
            id=name.replace("_", "-"), seq=4, target=CODEX, deliveries=dict.fromkeys(agents)
        )
        for name, agents in deliveries.items()
    }
    return SimpleNamespace(room=SimpleNamespace(message=known.get), safe_seq=50)


# --- what reaches the room -----------------------------------------------------------------------


async def test_every_word_of_a_message_reaches_the_room() -> None:
    body = MessageBody(to="all", content="hi", thread="side", reply_to="m-2", urgent=True, id="k")
    command = await Recorder(settings=SETTINGS).command(operations.send_message, AGENT, body)

    told: dict[str, Any] = {"thread": "side", "reply_to": M2, "urgent": True, "id": MessageId("k")}
    assert command == Send(sender=CLAUDE, to="all", text="hi", ttl_s=7.0, **told)


async def test_every_word_of_a_reply_reaches_the_room() -> None:
    asked: list[Any] = []

    async def hits(agent: str, turn: str, text: str) -> dict[str, tuple[()]]:
        asked.append((agent, turn, text))
        return {"s-1": ()}

    told: dict[str, Any] = {"turn": "t-1", "handoff": Handoff(to="codex", task="go on"), "final": True}
    told |= {"thread": "side", "local": True, "ending": Ending.FAILED, "reason": "why"}
    gateway = Recorder(settings=SETTINGS, board_hits=SimpleNamespace(for_reply=hits))
    usage = Usage(input=3)
    body = OutputBody(content="text", reply_to="m-2", id="k", usage=usage, **told)
    command = await gateway.command(operations.post_output, AGENT, body)
    ids: dict[str, Any] = {"reply_to": M2, "id": MessageId("k")}

    assert command == PostReply(
        sender=CLAUDE, text="text", ttl_s=7.0, usage=usage, hits={"s-1": ()}, **ids, **told
    )
    assert asked == [("claude", "t-1", "text")]
    plain = await gateway.command(operations.post_output, AGENT, OutputBody(content="text", reply_to="m-2"))
    activity = await gateway.command(
        operations.post_output, AGENT, OutputBody(content="text", reply_to="m-2", activity=True)
    )
    assert (plain.hits, activity.hits, activity.activity) == ({"s-1": ()}, {}, True)
    assert asked[1:] == [("claude", "m-2", "text")]


async def test_only_a_turn_that_broke_off_may_be_empty() -> None:
    gateway = Recorder(settings=SETTINGS)
    await gateway.command(operations.post_output, AGENT, OutputBody(content="", ending=Ending.FAILED))

    with pytest.raises(BadInput, match=r"\$.content"):
        await operations.post_output(gateway, by(AGENT, OutputBody(content="")))  # type: ignore[arg-type]  # it is enough


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (None, None),
        (Usage(input=3), None),
        (Usage(input=3, model="opus"), 1.5),
        (Usage(input=3, model="opus", cost_usd=0.25), 0.25),
        (Usage(input=3, model="opus", unpriced=True), None),
    ],
)
def test_a_reply_is_priced_where_its_sender_did_not(
    monkeypatch: pytest.MonkeyPatch, usage: Usage | None, cost: float | None
) -> None:
    monkeypatch.setattr(operations, "cost_usd", lambda model, usage: 1.5)
    priced = operations._priced(usage)

    assert (priced and priced.cost_usd) == cost


async def test_how_far_a_message_has_come_reaches_the_room() -> None:
    gateway = Recorder(writer=with_messages(m_1=("codex",), m_2=("codex", "claude")))
    report = DeliveryBody(id="m-1", state=ReportedState.FAILED, reason="why", agent="gemini")
    expected: dict[str, Any] = {"message": "m-1", "state": DeliveryState.FAILED, "reason": "why"}
    done = ControlDoneBody(id="m-1", state=ReportedState.FAILED, reason="why")

    assert await gateway.command(operations.report_delivery, AGENT, report) == ReportDelivery(
        agent=CLAUDE, **expected
    )
    assert await gateway.command(operations.report_delivery, ROOM, report) == ReportDelivery(
        agent=AgentId("gemini"), **expected
    )
    assert await gateway.command(operations.finish_control, AGENT, done) == ReportDelivery(
        agent=CLAUDE, **expected
    )
    of_room = DeliveryBody(id="m-1", state=ReportedState.TYPED)
    assert (await gateway.command(operations.report_delivery, ROOM, of_room)).agent == CODEX
    for message, error in (("m-2", BadInput), ("m-3", NotFound)):
        body = DeliveryBody(id=message, state=ReportedState.TYPED)
        with pytest.raises(error):
            await operations.report_delivery(gateway, by(ROOM, body))  # type: ignore[arg-type]  # it is enough


async def test_what_a_participant_does_reaches_the_room() -> None:
    gateway = Recorder()
    told: dict[str, Any] = {"detail": "used up", "until": 9.0, "dialog": Dialog(tool="Bash")}
    body = StateBody(state=ReportedAgentState.LIMITED, agent="codex", **told)
    own = await gateway.command(operations.report_state, AGENT, body)
    came_back = list(gateway.arrived)
    offline = await gateway.command(
        operations.report_state, AGENT, StateBody(state=ReportedAgentState.OFFLINE)
    )
    of_room = await gateway.command(operations.report_state, ROOM, body)

    assert own == SetState(agent=CLAUDE, state=AgentState.LIMITED, **told)
    assert offline == SetState(agent=CLAUDE, state=AgentState.OFFLINE)
    assert of_room == SetState(agent=CODEX, state=AgentState.LIMITED, **told)
    # Who says good-bye does not come back for it.
    assert gateway.arrived == came_back == [AGENT]
    with pytest.raises(BadInput):
        await operations.report_state(gateway, by(ROOM, StateBody(state=ReportedAgentState.IDLE)))  # type: ignore[arg-type]  # it is enough


# --- what comes back -----------------------------------------------------------------------------


class Answering:
    """A gateway whose room answers every command with these events."""

    def __init__(self, *events: KnownEvent | NoticePosted) -> None:
        self.commands: list[Any] = []
        self.settings = SETTINGS
        self.events = list(events)
        self.writer = with_messages(m_1=("codex",), m_9=("gemini",))

    async def submit(self, command: Any) -> list[Any]:
        self.commands.append(command)
        return self.events


def said(kind: type[Any], sender: AgentId = CLAUDE, target: AgentId = CODEX, **more: Any) -> Any:
    recipients = (target,)
    return kind(9, 1.0, MessageId("m-4"), sender, target, "default", "text", recipients=recipients, **more)


async def test_the_answer_to_a_message_says_to_whom_it_goes() -> None:
    body = MessageBody(to="codex", content="hi", id="m-9")
    notice = NoticePosted(9, 1.0, MessageId("e-9"), SYSTEM, HUMAN, "default", "", repeats=MessageId("m-1"))
    views = [
        await operations.send_message(gateway, by(AGENT, body))  # type: ignore[arg-type]  # it is enough
        for gateway in (Answering(said(HumanMessage)), Answering(notice), Answering())
    ]

    assert [(view.id, view.seq, view.recipients) for view in views] == [
        ("m-4", 9, ("codex",)),
        # Said before by the same sender, or known under the same id.
        ("m-1", 4, ("codex",)),
        ("m-9", 4, ("gemini",)),
    ]


async def test_the_answer_to_a_reply_says_what_became_of_it() -> None:
    late = LateReply(9, 1.0, MessageId("e-9"), CLAUDE, SYSTEM, "default", "text", turn="t-1")
    cases: list[tuple[list[Any], tuple[Any, ...]]] = [
        ([said(AgentResponse)], ("m-4", 9, ("codex",), False, True)),
        ([said(AgentResponse, late=True)], ("m-4", 9, (), True, True)),
        ([late], ("e-9", 9, (), True, True)),
        ([said(AgentResponse, target=SYSTEM)], ("m-4", 9, ("system",), False, False)),
        # The room asks somebody else; nothing of the caller was posted, but its id is known.
        ([said(HumanMessage, sender=SYSTEM)], ("m-1", 4, ("codex",), False, True)),
        ([], ("m-1", 4, ("codex",), False, True)),
    ]
    for events, expected in cases:
        gateway: Any = Answering(*events)
        view = await operations.post_output(gateway, by(AGENT, OutputBody(content="text", id="m-1")))
        assert (view.id, view.seq, view.recipients, view.late, view.posted) == expected
    view = await operations.post_output(Answering(), by(AGENT, OutputBody(content="text")))  # type: ignore[arg-type]  # it is enough
    assert (view.id, view.seq, view.recipients, view.posted) == ("", 50, (), False)


MOVED = TurnMoved(
    9,
    1.0,
    MessageId("e-9"),
    SYSTEM,
    CLAUDE,
    "default",
    "",
    session_id=SessionId("s-1"),
    turn=TurnId("t-1"),
    agent=CLAUDE,
    state=TurnState.WORKING,
    round=1,
)


async def test_the_answer_to_who_works_says_whether_a_clock_was_moved() -> None:
    moved, not_moved = Answering(MOVED), Answering(said(HumanMessage))
    views = [
        await operations.report_working(gateway, by(AGENT, WorkingBody(note="soon")))  # type: ignore[arg-type]  # it is enough
        for gateway in (moved, not_moved)
    ]

    assert [view.extended for view in views] == [True, False]
    assert moved.commands == [ExtendTurn(agent=CLAUDE, note="soon")]


@pytest.mark.parametrize("is_online", [True, False])
async def test_only_who_is_here_has_a_screen(monkeypatch: pytest.MonkeyPatch, is_online: bool) -> None:
    async def fresh(agent: str) -> str:
        return f"the screen of {agent}"

    participants = {CLAUDE: SimpleNamespace(id=CLAUDE, online=is_online)}
    monkeypatch.setattr(operations, "known_participant", lambda room, agent: room.participants[agent])
    gateway: Any = SimpleNamespace(
        writer=SimpleNamespace(room=SimpleNamespace(participants=participants)),
        screen_watch=SimpleNamespace(fresh=fresh),
    )
    if is_online:
        shown: Any = (await operations.fresh_screen(gateway, Call(ROOM, {"id": "claude"}, None, None))).screen
        assert shown == "the screen of claude"
        return
    with pytest.raises(Refused, match="claude is offline"):
        await operations.fresh_screen(gateway, Call(ROOM, {"id": "claude"}, None, None))


async def test_room_finds_a_long_reply_parsed() -> None:
    text = "@send.codex x\n```\n{}x\n" * 500
    await operations.read_ahead(text)
    before = read_lines.cache_info().misses, fenced_objects.cache_info().misses
    read_agent_text(text)
    Envelope.parse(text)

    assert (read_lines.cache_info().misses, fenced_objects.cache_info().misses) == before
