"""What is still to be done in a room: who has to act on which message, until when."""

import math
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import islice, repeat, takewhile

from csp.protocol.enums import AgentId, DeliverKind, DeliveryState, HeldReason, MessageId
from csp.protocol.responses import Deliver, DeliveryView
from csp.room.room_state import ROOM_HOLDS, Message, Participant, Room
from csp.room.sessions.turn_prompt import handoffs


def is_due(participant: Participant, message: Message) -> bool:
    """Tell whether `participant` should act on a message of its queue now."""
    if message.kind is DeliverKind.CONTROL:
        return True
    return not participant.paused and message.deliveries[participant.id].reason not in ROOM_HOLDS


def pending(room: Room, agent: AgentId, *, after: int = 0, upto: int | None = None) -> Iterator[Deliver]:
    """Yield what `agent` should act on, in the order of the journal but for controls, which come first.

    `upto` is the last event that is safe on disk: nobody may act on one that could still be lost.
    """
    participant = room.participants[agent]
    last = room.seq if upto is None else upto
    for ids in (participant.controls, participant.queue):
        for message in room.unfinished(newer(ids, after)):
            if message.seq <= last and is_due(participant, message):
                yield to_deliver(room, message, agent)


def newer(queue: dict[MessageId, int], after: int) -> Iterable[MessageId]:
    """Return what came into a queue after a seq, oldest first."""
    # A queue may be long while a reader has seen nearly all of it, so the search starts at its end.
    newest_first = takewhile(lambda message_id: queue[message_id] > after, reversed(queue))
    return list(newest_first)[::-1]


def first_held(room: Room, agent: AgentId, after: int = 0) -> int | None:
    """Return the seq of the oldest message after `after` that waits for more than `agent`'s attention."""
    participant = room.participants[agent]
    waiting = room.unfinished(newer(participant.queue, after))
    return next((message.seq for message in waiting if not is_due(participant, message)), None)


def oldest_waiting(room: Room, limit: int) -> list[tuple[Message, AgentId]]:
    """Return the oldest deliveries that wait in any queue, in the order of the journal."""
    # The queues may be long, while each of them is in order: no more of them is looked at than is returned.
    agents = list(room.participants)
    queues = (
        zip(queue.values(), repeat(number), queue)
        for number, participant in enumerate(room.participants.values())
        for queue in (participant.controls, participant.queue)
    )
    oldest = islice(merge(*queues), limit)
    return [(next(room.unfinished((message_id,))), agents[number]) for _, number, message_id in oldest]


def to_deliver(room: Room, message: Message, agent: AgentId) -> Deliver:
    """Return a message as its recipient gets it, with whose turn it is in the words of the wire."""
    is_turn = message.kind is DeliverKind.TURN
    signal = current = None
    live = next(iter(room.sessions.live_with(agent)), None)
    if live is not None and message.kind is not DeliverKind.CONTROL:
        is_asked = is_turn or agent in live.turns
        signal, current = ("your_turn", agent) if is_asked else ("turn_wait", live.current)
    # What a reply to the turn may do, as long as the turn is open.
    session = room.sessions.get(message.session) if is_turn else None
    turn = session.turns.get(agent) if session else None
    is_open = turn is not None and turn.id == message.turn
    return Deliver(
        id=message.id,
        seq=message.seq,
        kind=message.kind,
        sender=message.sender,
        text=message.text,
        urgent=message.urgent,
        state=message.deliveries[agent].state,
        thread=message.thread,
        reply_to=message.reply_to,
        control=message.control,
        choice=message.choice,
        turn=message.turn,
        turn_signal=signal,
        current_turn=current,
        ending=message.ending,
        handoff_to=handoffs(session, agent) if session and is_open else (),
        is_repair=turn.is_repair if turn and is_open else False,
        max_output=turn.max_output if turn and is_open else None,
    )


def next_deadline(room: Room) -> float | None:
    """Return when `expired` will next have something to say."""
    times = (message.expires for message, _ in _expiring(room) if message.expires is not None)
    return min(times, default=None)


def expired(room: Room, now: float) -> list[tuple[Message, AgentId]]:
    """Return the deliveries whose time is over."""
    return [(m, agent) for m, agent in _expiring(room, now) if m.expires is not None and m.expires <= now]


def _expiring(room: Room, now: float = -math.inf) -> Iterator[tuple[Message, AgentId]]:
    # Messages live equally long, so the first of a queue that is not over at `now` ends the search; asks
    # have clocks of their own, what has been typed can no longer expire. Controls are few: each counts.
    for agent, participant in room.participants.items():
        for message in room.unfinished(participant.controls):
            if message.deliveries[agent].is_untouched:
                yield message, agent
        for message in room.unfinished(participant.queue):
            if message.expires is not None and message.deliveries[agent].is_untouched:
                yield message, agent
                if message.expires > now:
                    break


def delivery_view(room: Room, message: Message, agent: AgentId) -> DeliveryView:
    """Return the state of one delivery, with the reason the room itself knows for its waiting."""
    delivery = message.deliveries[agent]
    state, reason = delivery.state, delivery.reason
    participant = room.participants.get(agent)
    if state is DeliveryState.HELD and reason not in ROOM_HOLDS and participant and not participant.online:
        # What a sidecar said of a CLI that has gone since is no longer true.
        reason = HeldReason.OFFLINE
    elif state is DeliveryState.QUEUED and participant is not None:
        if not participant.online:
            state, reason = DeliveryState.HELD, HeldReason.OFFLINE
        elif participant.paused and message.kind is not DeliverKind.CONTROL:
            state, reason = DeliveryState.HELD, HeldReason.PAUSED
        elif message.id in participant.queue:
            # One that is not its participant's next waits for what that one waits for.
            due = (waiting for waiting in room.unfinished(participant.queue) if is_due(participant, waiting))
            first = next(due, message)
            ahead = first.deliveries[agent]
            if first is not message and ahead.state is not DeliveryState.QUEUED:
                state, reason = DeliveryState.HELD, ahead.reason or HeldReason.BUSY
    return DeliveryView(state=state, at=delivery.at, reason=reason or None)
