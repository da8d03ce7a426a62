"""Participants' operations, identical over HTTP and WebSocket."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from csp.errors import BadInput, Forbidden, NotFound, Refused
from csp.gateway.auth import Caller
from csp.gateway.gateway import Gateway
from csp.gateway.route_table import AnyCall, Posted, fill
from csp.price_list import cost_usd
from csp.protocol import enums, requests
from csp.protocol.codec import check_text
from csp.protocol.events import AgentResponse, KnownEvent, LateReply, MessageEvent, NoticePosted, TurnMoved
from csp.protocol.responses import Done, MeView, OutputView, SentView, WorkingView
from csp.protocol.screen_frames import LiveBody, ScreenAnswer
from csp.room.agent_text import Envelope
from csp.room.chat_markdown import first_lines, read_lines
from csp.room.commands import ExtendTurn, PostReply, ReportDelivery, Send, SetState
from csp.room.membership import known_participant
from csp.room.visibility import may_watch

log = logging.getLogger(__name__)

#: A longer reply (in characters) takes too long to parse on the event loop.
LONG_REPLY: Final = 4096


async def send_message(gateway: Gateway, call: Posted[requests.MessageBody]) -> SentView:
    """Send a message to one participant or to all."""
    caller, body = call.caller, call.body
    check_text(body.content)
    ttl_s = gateway.settings.message_ttl_s
    named = gateway.settings.groups
    # A group that shares a participant's name does not count.
    taken = {enums.ALL, enums.HUMAN, *gateway.writer.room.participants} if named else ()
    to = with_groups(body.to, {name: members for name, members in named.items() if name not in taken})
    command = fill(Send, body, sender=caller.id, to=to, text=body.content, ttl_s=ttl_s)
    return sent_view(gateway, await gateway.submit(command), body.id)


def with_groups(to: str, groups: Mapping[str, Sequence[str]]) -> str:
    """Return the recipients of a message, with each group's name replaced by its members."""
    names = [name.strip().lower() for name in to.split(",")]
    return ",".join(dict.fromkeys(one for name in names for one in groups.get(name, (name,))))


async def read_ahead(text: str) -> None:
    """Parse a long reply in a thread, so that the room finds it already parsed when it decides."""
    if len(text) > LONG_REPLY:

        def read() -> None:
            for part in {text, Envelope.parse(text).message}:
                read_lines(first_lines(part)[0])

        await asyncio.to_thread(read)


async def post_output(gateway: Gateway, call: Posted[requests.OutputBody]) -> OutputView:
    """Post the output of a participant; with `replyTo` it goes to the sender of that message."""
    caller, body = call.caller, call.body
    if not body.content and body.ending is enums.Ending.DONE:
        raise BadInput("expected `str` of length >= 1 - at `$.content`", "only a failed turn may be empty")
    check_text(body.content)
    bound = None if body.activity else body.turn or body.reply_to
    hits = await gateway.board_hits.for_reply(caller.id, bound, body.content) if bound else {}
    usage, ttl_s = _priced(body.usage), gateway.settings.message_ttl_s
    command = fill(PostReply, body, sender=caller.id, text=body.content, usage=usage, ttl_s=ttl_s, hits=hits)
    events = await gateway.submit(command)
    # Output that is not posted may still cause a turn, which is a message from the room itself.
    said = (
        event for event in events if isinstance(event, MessageEvent | LateReply) and event.sender == caller.id
    )
    first = next(said, None)
    if isinstance(first, AgentResponse) and first.malformed:
        log.warning("reply malformed", extra={"agent": first.sender, "message_id": first.id})
    if first is not None and (isinstance(first, LateReply) or first.late):
        return OutputView(success=True, id=first.id, seq=first.seq, recipients=(), late=True)
    if first is not None:
        return _output_view(first.id, first.seq, first.recipients, first.target)
    known = gateway.writer.room.message(body.id or "")
    if known is not None:
        return _output_view(known.id, known.seq, tuple(known.deliveries), known.target)
    # There was nothing to post.
    return _output_view(body.id or "", gateway.writer.safe_seq, (), enums.SYSTEM)


def _priced(usage: requests.Usage | None) -> requests.Usage | None:
    """Add the cost of a reply from the price list unless its sender reported a cost."""
    if usage is None or usage.model is None or usage.cost_usd is not None or usage.unpriced:
        return usage
    return msgspec.structs.replace(usage, cost_usd=cost_usd(usage.model, usage))


def _output_view(
    id: str, seq: int, recipients: tuple[enums.AgentId, ...], target: enums.AgentId
) -> OutputView:
    # Output that remains in its pane is recorded but not delivered.
    return OutputView(success=True, id=id, seq=seq, recipients=recipients, posted=target != enums.SYSTEM)


async def who_am_i(gateway: Gateway, call: AnyCall) -> MeView:
    """Return the participant that owns the token."""
    caller, known = call.caller, gateway.writer.room.participants.get(call.caller.id)
    kind = enums.ParticipantKind.HUMAN if known is None else known.kind
    return MeView(id=caller.id, role=caller.role, kind=kind, room=gateway.settings.room)


async def report_delivery(gateway: Gateway, call: Posted[requests.DeliveryBody]) -> Done:
    """Record the state of a delivery to the caller or, with the room token, to the agent in the body."""
    caller, body = call.caller, call.body
    agent = caller.id
    if caller.role is enums.Role.ROOM and body.agent is not None:
        agent = enums.AgentId(body.agent)
    elif caller.role is enums.Role.ROOM:
        message = gateway.writer.room.message(body.id)
        if message is None:
            raise NotFound(f"unknown message {body.id!r}", "see: csp history")
        if len(message.deliveries) != 1:
            raise BadInput(f"{body.id} has {len(message.deliveries)} recipients", "name one as 'agent'")
        agent = next(iter(message.deliveries))
    state = enums.DeliveryState(body.state)
    await gateway.submit(ReportDelivery(agent=agent, message=body.id, state=state, reason=body.reason))
    return Done()


async def finish_control(gateway: Gateway, call: Posted[requests.ControlDoneBody]) -> Done:
    """Report the result of a control."""
    return await report_delivery(gateway, call.with_body(fill(requests.DeliveryBody, call.body)))


async def report_state(gateway: Gateway, call: Posted[requests.StateBody]) -> Done:
    """Report the state of a participant; `offline` makes it leave the room."""
    caller, body = call.caller, call.body
    agent = caller.id
    if caller.role is enums.Role.ROOM:
        if body.agent is None:
            raise BadInput("the human has no state to report", "name an agent, or use its token")
        agent = enums.AgentId(body.agent)
    elif body.state is not enums.ReportedAgentState.OFFLINE:
        await gateway.arrive(caller)
    await gateway.submit(fill(SetState, body, agent=agent, state=enums.AgentState(body.state)))
    return Done()


async def report_working(gateway: Gateway, call: Posted[requests.WorkingBody]) -> WorkingView:
    """Request more time; without an open turn this does nothing."""
    usage = _priced(call.body.usage)
    events = await gateway.submit(fill(ExtendTurn, call.body, agent=call.caller.id, usage=usage))
    return WorkingView(success=True, extended=any(isinstance(event, TurnMoved) for event in events))


async def show_live(gateway: Gateway, call: Posted[LiveBody]) -> Done:
    """Show a live frame to watchers; it is not recorded."""
    if call.caller.role is enums.Role.ROOM:
        raise BadInput("the human has no screen to show", "use the token of an agent")
    gateway.screen_watch.show(call.caller.id, call.body)
    return Done()


def check_watch(gateway: Gateway, caller: Caller, agent: str) -> enums.AgentId:
    """Return the agent whose screen is requested, or raise if the caller may not see it."""
    if not may_watch(enums.AgentId(agent), caller.reader):
        raise Forbidden(f"{caller.id} may not see the screen of {agent}", "use the room token")
    return known_participant(gateway.writer.room, agent).id


async def fresh_screen(gateway: Gateway, call: AnyCall) -> ScreenAnswer:
    """Request an agent's current screen."""
    known = check_watch(gateway, call.caller, call.path["id"])
    if not gateway.writer.room.participants[known].online:
        raise Refused(f"{known} is offline, so it has no screen", "see: csp agents")
    return ScreenAnswer(agent=known, screen=await gateway.screen_watch.fresh(known))


def sent_view(gateway: Gateway, events: list[KnownEvent], own_id: str | None) -> SentView:
    """Return the response for the message in `events`, or for its earlier duplicate."""
    said = next((event for event in events if isinstance(event, MessageEvent)), None)
    if said is not None:
        return SentView(success=True, id=said.id, seq=said.seq, recipients=said.recipients)
    repeated = [event.repeats for event in events if isinstance(event, NoticePosted) and event.repeats]
    message_id = repeated[0] if repeated else own_id
    known = gateway.writer.room.message(message_id or "")
    if known is None:
        raise NotFound(f"unknown message {message_id!r}", "see: csp history")
    return SentView(success=True, id=known.id, seq=known.seq, recipients=tuple(known.deliveries))
