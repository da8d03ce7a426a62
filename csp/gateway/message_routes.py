"""Routes for sent messages: delivery states, the queue, and actions such as cancelling."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from csp.errors import NotFound, Refused
from csp.gateway import journal_maintenance, operations
from csp.gateway.gateway import Gateway
from csp.gateway.route_table import AnyCall, Posted, fill
from csp.journal.history_query import HistoryQuery
from csp.journal.rewrite import REDACTED
from csp.protocol.enums import HUMAN, UNDELIVERED, AgentId, MessageAction, MessageId, SessionId
from csp.protocol.events import MessageEvent
from csp.protocol.notes import is_note_id
from csp.protocol.requests import MessageActionBody
from csp.protocol.responses import DeliveryView, MessageView, QueueView, SentView, WaitingView
from csp.room.commands import CancelMessage, ReleaseMessage, Send
from csp.room.messages import delivery_view, oldest_waiting
from csp.room.visibility import is_hidden, seals_on

#: The number of messages that GET /queue lists, oldest first.
MAX_LISTED: Final = 1000
_NUMBER: Final = re.compile(r"[0-9]{1,15}")


async def message_states(gateway: Gateway, call: AnyCall) -> MessageView:
    await gateway.writer.settle()
    view, seals = await _message_view(gateway, await id_of(gateway, call.path["id"]))
    reader = call.caller.reader
    is_theirs = reader in (None, view.sender, *view.recipients)
    if not is_theirs or is_hidden(seals, AgentId(view.sender), reader, gateway.writer.room.sessions):
        raise NotFound(f"unknown message {view.id!r}", "you can only see messages that you sent or received")
    return view


async def _message_view(gateway: Gateway, message_id: str) -> tuple[MessageView, Mapping[SessionId, int]]:
    """Return a message's delivery states and the sealed phases in which it was sent."""
    room = gateway.writer.room
    known = room.message(message_id)
    if known is not None:
        states = {str(agent): delivery_view(room, known, agent) for agent in known.deliveries}
        view = MessageView(id=known.id, seq=known.seq, sender=known.sender, recipients=states)
        return view, known.seals
    found = await gateway.history.find(MessageId(message_id))
    if found is None or not isinstance(found.event, MessageEvent):
        raise NotFound(f"unknown message {message_id!r}", "see: csp history")
    ends = {
        str(step.agent): DeliveryView(state=step.state, at=step.ts, reason=step.reason or None)
        for step in found.deliveries
    }
    event = found.event
    view = MessageView(id=event.id, seq=event.seq, sender=event.sender, recipients=ends)
    return view, seals_on(event)


async def id_of(gateway: Gateway, given: str) -> str:
    """Return the id of a message given by its number, such as 52, #52 or m-52, or by its id."""
    number = given.removeprefix("#").removeprefix("m-")
    if not _NUMBER.fullmatch(number) or gateway.writer.room.message(given) is not None:
        return given
    at = int(number)
    await gateway.writer.settle()
    found = await gateway.history.page(HistoryQuery(limit=1, after=at - 1, before=at + 1))
    items = [msgspec.json.decode(line) for line in found.lines]
    return str(items[0]["id"]) if items else given


async def act_on_message(gateway: Gateway, call: Posted[MessageActionBody]) -> SentView:
    message_id = await id_of(gateway, call.path["id"])
    action = call.choice("action", MessageAction)
    if action is MessageAction.RESEND:
        return await resend(gateway, message_id, call.body.id)
    if action is MessageAction.REDACT:
        await journal_maintenance.redact(gateway, message_id)
        if is_note_id(message_id):
            return SentView(
                success=True, id=MessageId(message_id), seq=gateway.writer.safe_seq, recipients=()
            )
    elif action is MessageAction.CANCEL:
        await gateway.submit(CancelMessage(message=message_id, **call.once))
    else:
        await gateway.submit(ReleaseMessage(message=message_id, **call.once))
    view, _ = await _message_view(gateway, message_id)
    return SentView(success=True, id=view.id, seq=view.seq, recipients=tuple(view.recipients))


async def resend(gateway: Gateway, message_id: str, own_id: str | None) -> SentView:
    """Resend an old message to the recipients it did not reach, or to all if it reached everyone."""
    view, seals = await _message_view(gateway, message_id)
    if gateway.writer.room.sessions.is_sealed(seals):
        raise Refused(f"#{view.seq} is sealed until its phase ends", "see: csp mode show")
    found = await gateway.history.find(MessageId(message_id))
    if found is None or not isinstance(found.event, MessageEvent):
        raise NotFound(f"the text of #{view.seq} is no longer in the journal", "write it as a new message")
    if found.event.text == REDACTED:
        raise Refused(f"the text of #{view.seq} was removed", "write it again as a new message")
    missed = [agent for agent, step in view.recipients.items() if step.state in UNDELIVERED]
    only = tuple(AgentId(agent) for agent in (missed or view.recipients))
    event = found.event
    to = only[0] if len(only) == 1 else event.target
    ttl_s = gateway.settings.message_ttl_s
    new_id = None if own_id is None else MessageId(own_id)
    send = Send(sender=HUMAN, to=to, text=event.text, thread=event.thread, ttl_s=ttl_s, only=only, id=new_id)
    return operations.sent_view(gateway, await gateway.submit(send), own_id)


async def queue(gateway: Gateway, call: AnyCall) -> QueueView:
    await gateway.writer.settle()
    room = gateway.writer.room
    items: list[WaitingView] = []
    for waiting, agent in oldest_waiting(room, MAX_LISTED):
        view = delivery_view(room, waiting, agent)
        states = msgspec.structs.asdict(view)
        items.append(fill(WaitingView, waiting, text=waiting.text[:200], agent=agent, **states))
    return QueueView(items=tuple(items))
