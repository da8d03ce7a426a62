"""The tests of the state of a room."""

from typing import Any, cast

import msgspec
import pytest

from csp.protocol.enums import (
    ALL,
    HUMAN,
    AgentId,
    AgentState,
    ControlVerb,
    DeliverKind,
    DeliveryState,
    JoinRole,
    MessageId,
    ParticipantKind,
)
from csp.protocol.events import (
    ControlSent,
    DeliveryMoved,
    HumanMessage,
    Joined,
    KnownEvent,
    Left,
    PrunedBase,
    Redacted,
    StateChanged,
    Unknown,
    type_of,
)
from csp.protocol.requests import Usage
from csp.protocol.responses import Deliver
from csp.room.commands import (
    CancelMessage,
    ControlAgent,
    Leave,
    PostReply,
    RedactMessage,
    Rejoin,
    Remove,
    Send,
    SetState,
    Tick,
)
from csp.room.messages import delivery_view, expired, first_held, next_deadline, oldest_waiting, pending
from csp.room.room_reducer import WINDOW, apply, replay
from csp.room.room_state import Participant, Room, dump, is_pending, load, without_texts
from tests.room.examples import EVENTS
from tests.room.live import CLAUDE, CODEX, LiveRoom, one
from tests.room.playing import Play

S = DeliveryState


@pytest.fixture
def live() -> LiveRoom:
    return LiveRoom("claude", "codex")


@pytest.fixture
def _small_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.room.room_reducer.WINDOW", 3)


def text_of(live: LiveRoom, message: str) -> str:
    known = live.room.message(message)
    assert known is not None
    return known.text


# --- events --------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", EVENTS, ids=type_of)
def test_event_applies_to_a_room_that_knows_nothing(event: KnownEvent) -> None:
    room = apply(Room(), event)

    assert (room.seq, room.ts) == (event.seq, event.ts)


@pytest.mark.parametrize(
    "event", [e for e in EVENTS if type_of(e) in ("system", "late", "pruned")], ids=type_of
)
def test_event_that_only_counts(live: LiveRoom, event: KnownEvent) -> None:
    before = load(dump(live.room))
    after = apply(live.room, event)
    before.seq, before.ts = event.seq, event.ts

    assert after == before


def test_event_of_a_newer_version_only_counts(live: LiveRoom) -> None:
    before = load(dump(live.room))
    after = apply(live.room, Unknown(99, 2000.0, "run.started"))
    before.seq, before.ts = 99, 2000.0

    assert after == before


def test_event_of_no_known_kind_is_a_fault_of_ours() -> None:
    with pytest.raises(AssertionError):
        apply(Room(), cast(Any, object()))


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (Left, {"reason": "closed"}),
        (Left, {"reason": "removed", "removed": True}),
        (StateChanged, {"paused": True}),
    ],
)
def test_event_about_a_stranger_is_passed_over(
    live: LiveRoom, kind: type[KnownEvent], fields: dict[str, Any]
) -> None:
    before = dump(live.room)
    event = kind(
        live.room.seq, live.room.ts, MessageId("e-9"), AgentId("mallory"), ALL, "default", "", **fields
    )

    assert dump(apply(live.room, event)) == before


@pytest.mark.parametrize(("message", "agent"), [("m-999", "codex"), ("m-3", "mallory"), ("m-3", "claude")])
def test_delivery_of_something_unknown_is_passed_over(live: LiveRoom, message: str, agent: str) -> None:
    live.say(HUMAN, CODEX)
    before = dump(live.room)
    event = DeliveryMoved(
        *(live.room.seq, live.room.ts, MessageId("e-9"), AgentId(agent), HUMAN, "default", ""),
        message=MessageId(message),
        agent=AgentId(agent),
        state=S.CONFIRMED,
    )

    assert dump(apply(live.room, event)) == before


def test_redaction_of_something_unknown_is_passed_over(live: LiveRoom) -> None:
    before = dump(live.room)
    head = (live.room.seq, live.room.ts, MessageId("e-9"), HUMAN, ALL, "default", "")

    assert dump(apply(live.room, Redacted(*head, MessageId("m-999")))) == before


def test_message_to_a_stranger_is_kept_until_it_ends() -> None:
    head = (1, 1.0, MessageId("m-1"), HUMAN, CODEX, "default", "hi")
    room = apply(Room(), HumanMessage(*head, recipients=(CODEX,)))
    ended = DeliveryMoved(
        *(2, 2.0, MessageId("e-2"), CODEX, HUMAN, "default", ""), MessageId("m-1"), CODEX, S.FAILED
    )

    assert room.messages[MessageId("m-1")].text == "hi"
    assert apply(room, ended).messages[MessageId("m-1")].text == ""


def test_answer_to_a_message_of_a_lost_line_applies(live: LiveRoom) -> None:
    said = live.say(HUMAN, CODEX)
    live.do(PostReply(sender=CODEX, text="hi", reply_to=said.id))
    room = replay(event for event in live.journal if event.id != said.id)

    assert room.seq == live.room.seq


def test_base_is_the_room_as_it_stood(live: LiveRoom) -> None:
    live.say(HUMAN, CODEX)
    base = PrunedBase(
        live.room.seq, live.room.ts, MessageId(""), HUMAN, ALL, "", "", msgspec.Raw(dump(live.room))
    )

    assert dump(apply(Room(), base)) == dump(live.room)


def test_state_change_leaves_out_what_it_does_not_name(live: LiveRoom) -> None:
    live.do(SetState(agent=CLAUDE, state=AgentState.LIMITED, detail="quota", until=5.0))
    live.do(ControlAgent(agent=CLAUDE, verb=ControlVerb.SHARE))
    live.do(ControlAgent(agent=CLAUDE, verb=ControlVerb.PAUSE))
    live.do(ControlAgent(agent=CLAUDE, verb=ControlVerb.NOSHARE))
    claude = live.agent(CLAUDE)

    assert (claude.state, claude.detail, claude.until) == (AgentState.LIMITED, "quota", 5.0)
    assert (claude.paused, claude.share) == (True, False)


@pytest.mark.parametrize(
    ("online", "paused", "state", "shown"),
    [
        (True, False, AgentState.BUSY, AgentState.BUSY),
        (True, True, AgentState.BUSY, AgentState.PAUSED),
        (False, False, AgentState.BUSY, AgentState.OFFLINE),
        (False, True, AgentState.BUSY, AgentState.OFFLINE),
    ],
)
def test_what_stops_a_participant_is_shown_first(
    online: bool, paused: bool, state: AgentState, shown: AgentState
) -> None:
    participant = Participant(
        CLAUDE,
        "claude",
        ParticipantKind.CLI,
        JoinRole.AGENT,
        1,
        1.0,
        online=online,
        paused=paused,
        state=state,
    )

    assert participant.shown_state is shown


# --- snapshots -----------------------------------------------------------------------------------


def test_empty_room_is_an_object_of_nothing() -> None:
    assert dump(Room()) == b'{"runs":{},"sessions":{},"wakeups":{},"boards":{}}'
    assert load(b"{}") == Room()


def test_snapshot_is_the_room(live: LiveRoom) -> None:
    said = live.say(HUMAN, ALL, "fïx 😀", ttl_s=60.0)
    live.report(CODEX, said.id, S.HELD, "busy")
    live.do(ControlAgent(agent=CLAUDE, verb=ControlVerb.APPROVE, choice=2))
    live.do(Remove(agent=CODEX))

    assert load(dump(live.room)) == live.room


def test_replay_goes_on_from_a_room(live: LiveRoom) -> None:
    snapshot, cut = load(dump(live.room)), len(live.journal)
    live.say(HUMAN, ALL)

    assert dump(replay(live.journal[cut:], snapshot)) == dump(live.room)
    assert dump(replay(live.journal)) == dump(live.room)


def test_room_without_texts_weighs_nothing(live: LiveRoom) -> None:
    said = live.say(HUMAN, CODEX, "secret")
    button = one(live.do(ControlAgent(agent=CODEX, verb=ControlVerb.DENY)), ControlSent)
    room = without_texts(live.room)

    assert b"secret" not in dump(room)
    assert room.participants[CODEX].queued_chars == 0
    assert [(item.id, item.text) for item in pending(room, CODEX)] == [(button.id, "deny"), (said.id, "")]


# --- texts ---------------------------------------------------------------------------------------


def test_text_is_dropped_when_nobody_waits_any_more(live: LiveRoom) -> None:
    said = live.say(HUMAN, ALL, "secret")
    live.report(CLAUDE, said.id, S.CONFIRMED)

    assert text_of(live, said.id) == "secret"

    live.report(CODEX, said.id, S.SUBMITTED)

    assert text_of(live, said.id) == ""
    assert b"secret" not in dump(live.room)


def test_text_for_the_human_is_not_kept(live: LiveRoom) -> None:
    said = live.say(CLAUDE, HUMAN, "secret")

    assert text_of(live, said.id) == ""


@pytest.mark.parametrize("end", ["submitted", "confirmed", "failed", "withdrawn", "expired", "removed"])
def test_queue_is_empty_after_every_end(live: LiveRoom, end: str) -> None:
    live.say(HUMAN, CODEX, "four")
    said = live.say(HUMAN, CODEX, "seven77", ttl_s=60.0)

    assert live.agent(CODEX).queued_chars == 11

    live.now += 60.0
    if end == "withdrawn":
        live.do(CancelMessage(message=said.id))
    elif end == "expired":
        live.report(CODEX, "m-3", S.TYPED)
        live.do(Tick())
    elif end == "removed":
        live.do(Remove(agent=CODEX))
    else:
        live.report(CODEX, said.id, S(end))
    if end != "removed":
        live.report(CODEX, "m-3", S.CONFIRMED)
        assert (live.agent(CODEX).queue, live.agent(CODEX).queued_chars) == ({}, 0)

    assert not any(is_pending(message) for message in live.room.messages.values())


def test_proof_after_submission_takes_nothing_off_twice(live: LiveRoom) -> None:
    said = live.say(HUMAN, CODEX, "four")
    live.report(CODEX, said.id, S.SUBMITTED)
    live.report(CODEX, said.id, S.CONFIRMED)

    assert live.agent(CODEX).queued_chars == 0
    assert live.shown(said.id, CODEX) == "confirmed"


@pytest.mark.parametrize("state", [None, S.TYPED, S.CONFIRMED])
def test_redaction_leaves_no_text_and_no_weight(live: LiveRoom, state: DeliveryState | None) -> None:
    said = live.say(HUMAN, CODEX, "secret")
    live.say(HUMAN, CLAUDE, "other")
    if state is not None:
        live.report(CODEX, said.id, state)
    live.do(RedactMessage(message=said.id))

    assert b"secret" not in dump(live.room)
    assert (live.agent(CODEX).queued_chars, live.agent(CLAUDE).queued_chars) == (0, 5)
    assert live.due(CODEX) == ([said.id] if state is S.TYPED else [])


def test_redacted_message_ends_without_weight(live: LiveRoom) -> None:
    said = live.say(HUMAN, CODEX, "secret")
    live.report(CODEX, said.id, S.TYPED)
    live.do(RedactMessage(message=said.id))
    live.report(CODEX, said.id, S.CONFIRMED)

    assert (live.agent(CODEX).queue, live.agent(CODEX).queued_chars) == ({}, 0)


# --- the window ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("_small_window")
def test_window_forgets_the_oldest(live: LiveRoom) -> None:
    said = [live.say(CLAUDE, HUMAN).id for _ in range(4)]

    assert list(live.room.messages) == said[1:]
    assert live.room.message(said[0]) is None


@pytest.mark.usefixtures("_small_window")
def test_window_keeps_what_somebody_waits_for(live: LiveRoom) -> None:
    said = live.say(HUMAN, CODEX, "wait", id="mine")
    for _ in range(5):
        live.say(CLAUDE, HUMAN)

    assert text_of(live, "mine") == "wait"
    assert live.due(CODEX) == [said.id]
    assert live.do(Send(sender=HUMAN, to=CODEX, text="wait", id=MessageId("mine"))) == []


@pytest.mark.usefixtures("_small_window")
def test_window_forgets_what_waited_once_it_ends(live: LiveRoom) -> None:
    said = live.say(HUMAN, ALL, id="mine")
    for _ in range(5):
        live.say(CLAUDE, HUMAN)
    live.report(CODEX, said.id, S.CONFIRMED)

    assert live.room.message("mine") is not None

    live.report(CLAUDE, said.id, S.TYPED)
    live.report(CLAUDE, said.id, S.CONFIRMED)

    assert live.room.message("mine") is None
    assert live.room.waiting == {}


@pytest.mark.usefixtures("_small_window")
def test_forgotten_id_may_be_used_again(live: LiveRoom) -> None:
    live.say(CLAUDE, HUMAN, id="mine")
    for _ in range(3):
        live.say(CLAUDE, HUMAN)

    assert live.say(CODEX, CLAUDE, id="mine").sender == CODEX


def test_message_of_an_id_used_twice_takes_the_place_of_the_first(live: LiveRoom) -> None:
    first = live.say(HUMAN, CLAUDE, "first", id="mine")
    assert isinstance(first, HumanMessage)
    second = msgspec.structs.replace(first, seq=live.room.seq + 1, target=CODEX, recipients=(CODEX,))
    live.room = apply(live.room, second)

    assert (live.due(CLAUDE), live.due(CODEX)) == ([], ["mine"])
    assert live.agent(CLAUDE).queued_chars == 0


@pytest.mark.usefixtures("_small_window")
def test_queue_keeps_its_order_across_the_window(live: LiveRoom) -> None:
    said = [live.say(HUMAN, CODEX).id for _ in range(7)]

    assert live.due(CODEX) == said
    assert (len(live.room.messages), len(live.room.waiting)) == (3, 4)


@pytest.mark.usefixtures("_small_window")
def test_buttons_are_in_the_window_too(live: LiveRoom) -> None:
    button = one(live.do(ControlAgent(agent=CODEX, verb=ControlVerb.DENY)), ControlSent)
    for _ in range(3):
        live.say(CLAUDE, HUMAN)

    assert live.due(CODEX) == [button.id]
    assert list(live.room.waiting) == [button.id]


def test_window_holds_ten_thousand() -> None:
    live = LiveRoom("codex")
    first = live.say(HUMAN, CODEX, id="first")
    second = live.say(CODEX, HUMAN, id="second")
    while len(live.room.messages) < WINDOW:
        live.say(CODEX, HUMAN)

    assert len(live.journal) == 1 + WINDOW == 10_001
    assert live.room.waiting == {}

    live.say(CODEX, HUMAN)

    assert list(live.room.waiting) == [first.id]
    assert live.room.message(second.id) is not None

    live.say(CODEX, HUMAN)

    assert live.room.message(second.id) is None
    assert live.due(CODEX) == [first.id]


# --- what is due ---------------------------------------------------------------------------------


def test_due_is_the_order_of_the_journal_but_buttons_come_first(live: LiveRoom) -> None:
    one_, two = live.say(HUMAN, CODEX), live.say(CLAUDE, CODEX, urgent=True)
    deny = one(live.do(ControlAgent(agent=CODEX, verb=ControlVerb.DENY)), ControlSent)
    three = live.say(HUMAN, CODEX)
    approve = one(live.do(ControlAgent(agent=CODEX, verb=ControlVerb.APPROVE)), ControlSent)

    assert live.due(CODEX) == [deny.id, approve.id, one_.id, two.id, three.id]


def test_due_after_a_seq_is_what_is_newer(live: LiveRoom) -> None:
    said = [live.say(HUMAN, CODEX) for _ in range(3)]
    button = one(live.do(ControlAgent(agent=CODEX, verb=ControlVerb.DENY)), ControlSent)

    def after(seq: int) -> list[str]:
        return [deliver.id for deliver in pending(live.room, CODEX, after=seq)]

    assert after(said[1].seq - 1) == [button.id, said[1].id, said[2].id]
    assert after(said[1].seq) == [button.id, said[2].id]
    assert after(said[2].seq) == [button.id]
    assert after(button.seq) == []


def test_due_is_only_what_is_safe_on_disk(live: LiveRoom) -> None:
    said = [live.say(HUMAN, CODEX) for _ in range(3)]
    live.do(ControlAgent(agent=CODEX, verb=ControlVerb.DENY))

    assert [deliver.id for deliver in pending(live.room, CODEX, upto=said[1].seq)] == [said[0].id, said[1].id]
    assert list(pending(live.room, CODEX, upto=0)) == []


def test_oldest_waiting_is_in_the_order_of_the_journal(live: LiveRoom) -> None:
    first, second, third = live.say(HUMAN, CODEX), live.say(HUMAN, CLAUDE), live.say(HUMAN, CODEX)

    found = [(message.id, agent) for message, agent in oldest_waiting(live.room, 10)]
    assert found == [(first.id, CODEX), (second.id, CLAUDE), (third.id, CODEX)]
    assert [message.id for message, _ in oldest_waiting(live.room, 2)] == [first.id, second.id]


def test_first_held_is_the_oldest_that_is_not_due(live: LiveRoom) -> None:
    first, second = live.say(HUMAN, CLAUDE), live.say(HUMAN, CLAUDE)
    assert first_held(live.room, CLAUDE) is None
    live.do(ControlAgent(agent=CLAUDE, verb=ControlVerb.PAUSE))

    assert (first_held(live.room, CLAUDE), first_held(live.room, CLAUDE, first.seq)) == (
        first.seq,
        second.seq,
    )


def test_paused_participant_is_due_nothing_but_buttons(live: LiveRoom) -> None:
    said = live.say(HUMAN, CODEX)
    events = live.do(ControlAgent(agent=CODEX, verb=ControlVerb.PAUSE))
    button = one(events, ControlSent)

    assert live.due(CODEX) == [button.id]
    assert live.shown(said.id, CODEX) == "held(paused)"
    assert live.shown(button.id, CODEX) == "queued"

    live.do(ControlAgent(agent=CODEX, verb=ControlVerb.RESUME))

    assert said.id in live.due(CODEX)
    assert live.shown(said.id, CODEX) == "queued"


def test_recipient_is_told_all_of_a_message(live: LiveRoom) -> None:
    asked = live.say(CODEX, CLAUDE)
    said = live.say(CLAUDE, CODEX, "hi", reply_to=asked.id, urgent=True)
    live.report(CODEX, said.id, S.TYPED)
    (deliver,) = pending(live.room, CODEX)

    assert deliver == Deliver(
        id=said.id,
        seq=said.seq,
        kind=DeliverKind.MESSAGE,
        sender="claude",
        text="hi",
        urgent=True,
        state=S.TYPED,
        thread="default",
        reply_to=asked.id,
    )


def test_recipient_is_told_all_of_a_button(live: LiveRoom) -> None:
    button = one(live.do(ControlAgent(agent=CODEX, verb=ControlVerb.APPROVE, choice=2)), ControlSent)
    (deliver,) = pending(live.room, CODEX)

    assert deliver == Deliver(
        id=button.id,
        seq=button.seq,
        kind=DeliverKind.CONTROL,
        sender="human",
        text="approve",
        urgent=True,
        control=ControlVerb.APPROVE,
        choice=2,
    )


# --- deadlines -----------------------------------------------------------------------------------


def test_quiet_room_has_no_deadline(live: LiveRoom) -> None:
    live.say(HUMAN, CODEX)

    assert next_deadline(live.room) is None


def test_deadline_is_the_earliest(live: LiveRoom) -> None:
    live.say(HUMAN, CODEX, ttl_s=60.0)
    live.now += 10.0
    live.say(HUMAN, CLAUDE, ttl_s=60.0)

    assert next_deadline(live.room) == 1060.0

    live.do(ControlAgent(agent=CLAUDE, verb=ControlVerb.DENY))

    assert next_deadline(live.room) == 1040.0


def test_every_button_has_its_own_deadline(live: LiveRoom) -> None:
    first = one(live.do(ControlAgent(agent=CODEX, verb=ControlVerb.DENY)), ControlSent)
    live.now += 10.0
    second = one(live.do(ControlAgent(agent=CODEX, verb=ControlVerb.APPROVE)), ControlSent)
    live.report(CODEX, first.id, S.TYPED)

    assert next_deadline(live.room) == second.expires == 1040.0
    assert [message.id for message, _ in expired(live.room, 1040.0)] == [second.id]


def test_deadline_has_moved_after_its_tick(live: LiveRoom) -> None:
    for _ in range(2):
        live.say(HUMAN, ALL, ttl_s=60.0)
    live.now += 1.0
    live.say(HUMAN, ALL, ttl_s=60.0)
    deadlines = []
    while (deadline := next_deadline(live.room)) is not None:
        deadlines.append(deadline)
        live.now = deadline
        live.do(Tick())

    assert deadlines == [1060.0, 1061.0]


# --- what a person sees --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("online", "paused", "state", "reason", "shown"),
    [
        (True, False, S.QUEUED, "", "queued"),
        (False, False, S.QUEUED, "", "held(offline)"),
        (False, True, S.QUEUED, "", "held(offline)"),
        (True, True, S.QUEUED, "", "held(paused)"),
        (False, True, S.HELD, "busy", "held(offline)"),
        (True, True, S.HELD, "busy", "held(busy)"),
        (False, False, S.HELD, "loop", "held(loop)"),
        (True, True, S.HELD, "loop", "held(loop)"),
        (False, True, S.TYPED, "", "typed"),
        (False, True, S.CONFIRMED, "", "confirmed"),
        (False, False, S.FAILED, "gone", "failed(gone)"),
    ],
)
def test_delivery_is_shown_with_what_the_room_knows(
    live: LiveRoom, online: bool, paused: bool, state: DeliveryState, reason: str, shown: str
) -> None:
    said = live.say(HUMAN, CODEX)
    delivery = live.room.messages[said.id].deliveries[CODEX]
    live.agent(CODEX).online, live.agent(CODEX).paused = online, paused
    delivery.state, delivery.reason = state, reason

    assert live.shown(said.id, CODEX) == shown


def test_delivery_to_the_removed_is_shown(live: LiveRoom) -> None:
    said = live.say(HUMAN, CODEX)
    del live.room.participants[CODEX]

    assert live.shown(said.id, CODEX) == "queued"


def test_delivery_is_shown_with_the_time_of_its_last_step(live: LiveRoom) -> None:
    said = live.say(HUMAN, CODEX)
    live.now = 1234.5
    live.report(CODEX, said.id, S.TYPED)

    assert delivery_view(live.room, live.room.messages[said.id], CODEX).at == 1234.5


def test_participant_is_where_it_was_after_a_return(live: LiveRoom) -> None:
    live.do(Leave(agent=CLAUDE, reason="closed"))
    live.do(Rejoin(agent=CLAUDE))

    assert list(live.room.participants) == ["claude", "codex"]
    assert isinstance(live.journal[-1], Joined)


def test_context_of_the_last_reply_is_kept() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("round_robin")
    play.reply(CLAUDE, usage=Usage(input=10, output=1, context=500, window=1000))
    play.reply(CODEX, usage=Usage(input=10, output=1))

    known = {one.id: (one.context, one.window) for one in play.room.participants.values()}
    assert known == {CLAUDE: (500, 1000), CODEX: (0, 0)}
