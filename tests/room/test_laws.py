"""What holds in every history of a room, checked on random ones."""

import hashlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec
import pytest
from hypothesis import given, settings

from csp.errors import CspError
from csp.protocol.enums import ALL, HUMAN, SYSTEM, AgentId, DeliverKind, DeliveryState, MessageId
from csp.protocol.events import (
    AgentCall,
    ControlSent,
    DeliveryMoved,
    Joined,
    KnownEvent,
    LateReply,
    LogRequested,
    MessageEvent,
    PrunedBase,
    Redacted,
    SystemReply,
    encode_event,
)
from csp.room import decide as deciding
from csp.room.commands import AnyCommand, PostReply, Prune, Send, Tick
from csp.room.messages import next_deadline, pending
from csp.room.room_reducer import apply, replay
from csp.room.room_state import Participant, Room, dump, is_pending, load, without_texts
from csp.room.sessions.session_reducer import Sessions
from csp.room.visibility import is_visible_to
from tests.room.histories import assert_draft_is_replay, histories, journal_of, play

S = DeliveryState
ROOT: Final = Path(__file__).resolve().parents[2]
SMALL_WINDOW: Final = 6
WAITING: Final = {S.QUEUED, S.HELD, S.TYPED}
Digest = Callable[[Path], str]
#: For laws that replay a history as often as it has lines.
half_as_many = settings(max_examples=settings().max_examples // 2)


@pytest.fixture(scope="module", autouse=True)
def _tight_limits() -> Iterator[None]:
    """Make every limit so small that a short history runs into it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("csp.room.room_reducer.WINDOW", SMALL_WINDOW)
        patch.setattr("csp.room.messages.MAX_HOPS", 2)
        patch.setattr("csp.room.messages.MAX_QUEUED", 12)
        patch.setattr("csp.room.membership.MAX_PARTICIPANTS", 5)
        yield


def replaying_process(hash_seed: str) -> Iterator[Digest]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.room.replaying"],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        questions, answers = process.stdin, process.stdout
        assert questions is not None and answers is not None

        def ask(path: Path) -> str:
            print(SMALL_WINDOW, path, file=questions, flush=True)
            return answers.readline().strip()

        yield ask


@pytest.fixture(scope="module")
def one_process() -> Iterator[Digest]:
    yield from replaying_process("1")


@pytest.fixture(scope="module")
def another_process() -> Iterator[Digest]:
    yield from replaying_process("2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("journal")


class Ledger:
    """What the journal says of each delivery, told without the room."""

    def __init__(self) -> None:
        self.said: dict[MessageId, MessageEvent | ControlSent] = {}
        self.states: dict[tuple[MessageId, AgentId], tuple[DeliveryState, str]] = {}
        self.redacted: set[MessageId] = set()

    def add(self, event: KnownEvent) -> None:
        match event:
            case MessageEvent():
                self.said[event.id] = event
                first = (S.HELD, event.held) if event.held else (S.QUEUED, "")
                self.states |= {(event.id, agent): first for agent in event.recipients}
            case ControlSent():
                self.said[event.id] = event
                self.states[event.id, event.target] = (S.QUEUED, "")
            case DeliveryMoved():
                self.states[event.message, event.agent] = (event.state, event.reason)
            case Redacted():
                self.redacted.add(event.message)
            case _:
                pass

    def due(self, participant: Participant, kind: type[MessageEvent] | type[ControlSent]) -> list[MessageId]:
        """Return what a participant should act on, in the order of the journal."""
        return [
            message
            for (message, agent), (state, reason) in self.states.items()
            if agent == participant.id
            and state in WAITING
            and isinstance(self.said[message], kind)
            and (kind is ControlSent or (reason != "loop" and not participant.paused))
        ]


# --- replay --------------------------------------------------------------------------------------


@given(script=histories())
def test_replay_of_the_file_in_another_process_gives_the_same_bytes(
    script: bytes, one_process: Digest, another_process: Digest, folder: Path
) -> None:
    events, room = [], Room()
    for step in play(script):
        events += step.events
        room = step.room
    path = folder / "journal.jsonl"
    path.write_bytes(b"".join(encode_event(event) + b"\n" for event in events))
    live = hashlib.sha256(dump(room)).hexdigest()

    assert one_process(path) == live
    assert another_process(path) == live


@half_as_many
@given(histories())
def test_snapshot_and_tail_at_every_cut_give_the_same_bytes(script: bytes) -> None:
    events = journal_of(script)
    live = dump(replay(events))
    room = Room()
    for cut, event in enumerate(events):
        assert dump(replay(events[cut:], load(dump(room)))) == live
        room = apply(room, event)


@half_as_many
@given(histories())
def test_history_without_any_one_line_still_applies(script: bytes) -> None:
    events = journal_of(script)
    for lost in range(len(events)):
        room = replay(events[:lost] + events[lost + 1 :])

        assert lost == len(events) - 1 or room.seq == len(events)
        for agent in room.participants:
            list(pending(room, agent))
        next_deadline(room)
        load(dump(room))


@given(histories())
def test_journal_with_redacted_texts_gives_the_same_bytes(script: bytes) -> None:
    events = journal_of(script)
    redacted = {event.message for event in events if isinstance(event, Redacted)}
    rewritten = [
        msgspec.structs.replace(event, text="[redacted]")
        if isinstance(event, MessageEvent) and event.id in redacted
        else event
        for event in events
    ]

    assert dump(replay(rewritten)) == dump(replay(events))


@half_as_many
@given(histories())
def test_pruned_journal_gives_the_same_bytes(script: bytes) -> None:
    events = journal_of(script)
    live = replay(events)
    for before in range(1, live.seq + 1):
        try:
            deciding.decide(live, Prune(before=before), 0.0)
        except CspError:
            break
        past = without_texts(replay(events[: before - 1]))
        state = msgspec.Raw(dump(past))
        base = PrunedBase(before - 1, past.ts, MessageId("e-0"), SYSTEM, ALL, "default", "", state)

        assert dump(replay([base, *events[before - 1 :]])) == dump(live)


# --- deliveries ----------------------------------------------------------------------------------


@given(histories())
def test_each_queue_is_in_the_order_of_the_journal(script: bytes) -> None:
    ledger = Ledger()
    for step in play(script):
        for event in step.events:
            ledger.add(event)
        for agent, participant in step.room.participants.items():
            found = list(pending(step.room, agent))
            controls = [item for item in found if item.kind is DeliverKind.CONTROL]
            messages = [item for item in found if item.kind is DeliverKind.MESSAGE]

            assert found == controls + messages
            for items, kind in ((controls, ControlSent), (messages, MessageEvent)):
                seqs = [item.seq for item in items]
                assert seqs == sorted(set(seqs))
                assert [item.id for item in items] == ledger.due(participant, kind)


@given(histories())
def test_nothing_is_delivered_after_its_end(script: bytes) -> None:
    ledger = Ledger()
    for event in journal_of(script):
        if isinstance(event, DeliveryMoved):
            before, _ = ledger.states[event.message, event.agent]
            assert before in WAITING or (before, event.state) == (S.SUBMITTED, S.CONFIRMED)
            assert before is not S.TYPED or event.state not in (S.WITHDRAWN, S.EXPIRED)
        ledger.add(event)


@given(histories())
def test_nothing_acknowledged_is_missing(script: bytes) -> None:
    ledger = Ledger()
    for step in play(script):
        for event in step.events:
            ledger.add(event)
        for (message_id, agent), (state, reason) in ledger.states.items():
            if state in WAITING:
                message = step.room.message(message_id)
                assert message is not None
                assert message.deliveries[agent].state is state
                assert message.deliveries[agent].reason == reason
                assert message.text == ("" if message_id in ledger.redacted else ledger.said[message_id].text)
                participant = step.room.participants[agent]
                assert message_id in {**participant.queue, **participant.controls}


@given(histories())
def test_every_accepted_message_is_in_the_journal_once(script: bytes) -> None:
    accepted: list[Send | PostReply] = []
    events: list[KnownEvent] = []
    for step in play(script):
        events += step.events
        if isinstance(step.command, Send | PostReply) and step.refused is None:
            accepted.append(step.command)
    ids = Counter(event.id for event in events)
    speech = [event for event in events if isinstance(event, MessageEvent | LateReply)]
    senders = {event.id: event.sender for event in speech}
    texts = Counter((event.sender, event.text) for event in speech)

    assert set(ids.values()) <= {1}
    for command in accepted:
        is_late = isinstance(command, PostReply) and command.turn is not None
        is_kept = command.id is not None and senders.get(command.id) == command.sender
        assert is_kept or texts[command.sender, command.text] == 1
        assert is_kept or is_late or command.id is None


@given(histories())
def test_every_command_is_run_once_at_most(script: bytes) -> None:
    said = Counter(event.text for event in journal_of(script) if isinstance(event, AgentCall))

    assert all(count == 1 for text, count in said.items() if text.startswith("<call"))
    assert not any(text.startswith("<hidden") for text in said)


@given(histories())
def test_every_question_is_answered_once_at_most(script: bytes) -> None:
    asked: set[MessageId] = set()
    for event in journal_of(script):
        if isinstance(event, LogRequested):
            asked.add(event.id)
        elif isinstance(event, SystemReply):
            assert event.query in asked
            asked.remove(event.query)


@given(histories())
def test_what_a_queue_weighs_is_what_is_in_it(script: bytes) -> None:
    for step in play(script):
        for participant in step.room.participants.values():
            waiting = step.room.unfinished(participant.queue)
            assert participant.queued_chars == sum(len(message.text) for message in waiting)


@given(histories())
def test_only_what_somebody_waits_for_outlives_the_window(script: bytes) -> None:
    for step in play(script):
        assert len(step.room.messages) <= SMALL_WINDOW
        for message in step.room.waiting.values():
            assert is_pending(message)
        for message in step.room.messages.values():
            assert is_pending(message) or message.text == ""


@half_as_many
@given(histories())
def test_deadline_and_tick_agree(script: bytes) -> None:
    for step in play(script):
        deadline = next_deadline(step.room)
        if deadline is None:
            assert deciding.decide(step.room, Tick(), 1e12) == []
            continue
        assert deciding.decide(step.room, Tick(), deadline - 0.125) == []
        room = load(dump(step.room))
        events = deciding.decide(room, Tick(), deadline)
        assert any(isinstance(event, DeliveryMoved) and event.state is S.EXPIRED for event in events)
        following = next_deadline(replay(events, room))
        assert following is None or following > deadline


# --- commands ------------------------------------------------------------------------------------


@given(histories())
def test_deciding_never_changes_the_room(script: bytes) -> None:
    def decide_and_compare(room: Room, command: AnyCommand, now: float) -> list[KnownEvent]:
        before = dump(room)
        try:
            return deciding.decide(room, command, now)
        finally:
            assert dump(room) == before

    for step in play(script, decide_and_compare):
        assert step.refused is None or step.events == []


@given(histories())
def test_draft_is_the_room_after_its_events(script: bytes) -> None:
    def draft_and_compare(room: Room, command: AnyCommand, now: float) -> list[KnownEvent]:
        draft = deciding.draft_of(room, command, now)
        assert_draft_is_replay(room, draft)
        return draft.events

    for step in play(script, draft_and_compare):
        assert step.refused is None or step.events == []


@given(histories())
def test_seqs_have_no_gap_and_times_never_fall(script: bytes) -> None:
    events = journal_of(script)
    times = [event.ts for event in events]

    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert times == sorted(times)


@given(histories())
def test_epoch_of_an_id_never_falls(script: bytes) -> None:
    epochs: dict[AgentId, int] = {}
    online: set[AgentId] = set()
    for step in play(script):
        for event in step.events:
            if isinstance(event, Joined):
                is_return = event.text.endswith("is back") or event.sender in online
                assert event.epoch == epochs.get(event.sender, 0) + (0 if is_return else 1)
                epochs[event.sender] = event.epoch
        online = {agent for agent, participant in step.room.participants.items() if participant.online}


# --- who reads what ------------------------------------------------------------------------------


@given(histories())
def test_direct_message_between_others_is_never_seen(script: bytes) -> None:
    private: dict[str, set[AgentId]] = {}
    seen_by: set[AgentId] = set()
    events: list[KnownEvent] = []
    for step in play(script):
        seen_by |= set(step.room.participants)
        events += step.events
        if isinstance(step.command, Send) and step.command.to != ALL:
            private[step.command.text] = {step.command.sender, AgentId(step.command.to)}
        for event in step.events:
            if isinstance(event, AgentCall | SystemReply) and event.target != ALL:
                private[event.text] = {event.sender, event.target}
        for agent in step.room.participants:
            for item in pending(step.room, agent):
                assert agent in private.get(item.text, {agent})
    for event in events:
        for agent in seen_by - private.get(event.text, seen_by):
            assert not is_visible_to(event, agent, Sessions())


@given(histories())
def test_nobody_gets_its_own_message(script: bytes) -> None:
    for event in journal_of(script):
        if isinstance(event, MessageEvent):
            assert event.sender not in event.recipients
            assert HUMAN not in event.recipients
