"""The route for a line that a person typed: the gateway reads it, so that no page has to."""

from difflib import get_close_matches

import msgspec

from csp.errors import BadInput, NotFound, Refused
from csp.gateway import answer_lines, operations, session_routes
from csp.gateway.gateway import Gateway
from csp.gateway.handlers import Posted, answered
from csp.journal.history_query import HistoryQuery
from csp.protocol import catalogue
from csp.protocol.enums import AgentId, SessionAction
from csp.protocol.requests import LineBody, MessageBody, ModeBody, SessionActionBody, StopBody, TurnBody
from csp.protocol.responses import LineKind, LineView
from csp.room import human_input
from csp.room.commands import ControlAgent
from csp.room.membership import known_participant

_SPEECH = frozenset({"agent_response", "agent_call"})
_NEWEST = 50


async def line(gateway: Gateway, call: Posted[LineBody]) -> LineView:
    """Do what a typed line says, once; a command that is the interface's own is returned to it."""
    body = call.body
    if await answered(gateway, call) is not None:
        return LineView(kind=LineKind.DONE)
    match human_input.read_line(body.line):
        case human_input.EmptyLine():
            return LineView(kind=LineKind.EMPTY)
        case human_input.InvalidLine(problem=problem, hint=hint):
            raise BadInput(problem, hint)
        case human_input.SetTarget(to=to):
            known = to if to == "all" else known_participant(gateway.writer.room, to).id
            return LineView(kind=LineKind.TARGET, to=known)
        case human_input.StopLine():
            return await _stop(gateway, call, body.line.strip())
        case human_input.ModeLine() as wish:
            fields = human_input.mode_fields(wish) | {"thread": body.thread, "id": body.id}
            try:
                mode = msgspec.convert(fields, ModeBody)
            except msgspec.ValidationError as exc:
                raise BadInput(str(exc), human_input.MODE_USAGE) from exc
            await session_routes.set_mode(gateway, call.with_body(mode))
            return LineView(kind=LineKind.DONE)
        case human_input.CommandLine() as typed:
            return await _run(gateway, call, typed)
        case human_input.MessageLine() as said:
            return await _send(gateway, call, said)


async def _send(gateway: Gateway, call: Posted[LineBody], said: human_input.MessageLine) -> LineView:
    body = call.body
    last: dict[str, str] = {}
    for name in human_input.quoted_agents(said.text):
        page = await gateway.history.page(HistoryQuery(limit=_NEWEST, agent=AgentId(name), types=_SPEECH))
        items = [msgspec.json.decode(found) for found in page.lines]
        # What the agent said last.
        text = next((str(item["text"]) for item in reversed(items) if item["sender"] == name), "")
        if text:
            last[name] = text
    message = MessageBody(
        to=said.to or body.to,
        content=human_input.insert_last_messages(said.text, last),
        thread=body.thread,
        reply_to=body.reply_to,
        urgent=said.urgent,
        id=body.id,
    )
    sent = await operations.send_message(gateway, call.with_body(message))
    return LineView(
        kind=LineKind.MESSAGE, id=sent.id, seq=sent.seq, recipients=sent.recipients, to=message.to
    )


async def _stop(gateway: Gateway, call: Posted[LineBody], word: str = "") -> LineView:
    """Stop the thread that is looked at, or everything; a typed word is kept in the conversation."""
    body = call.body
    if word:
        # In the thread of what runs, so that the word finds a session to stop.
        running = list(gateway.writer.room.sessions.live())
        thread = body.thread or (running[-1].thread if running else None)
        message = MessageBody(to="all", content=word, thread=thread, id=body.id)
        await operations.send_message(gateway, call.with_body(message))
    stopping = StopBody(thread=body.thread, all=body.thread is None, id=body.id)
    await session_routes.stop(gateway, call.with_body(stopping))
    return LineView(kind=LineKind.DONE)


def _unknown(name: str, *, is_known: bool) -> NotFound:
    """Return the error for a command that the page cannot do, with the one that was meant."""
    if is_known:
        return NotFound(f"/{name} works only in the pane", "see /help")
    known = [row.name for row in catalogue.COMMANDS if row.is_page_command]
    close = get_close_matches(name, known, n=1, cutoff=0.75)
    if close:
        return NotFound(f"Unknown command /{name}. Did you mean /{close[0]}?", "")
    return NotFound(f"Unknown command /{name}.", "see /help; a text that begins with a slash has two")


async def _run(gateway: Gateway, call: Posted[LineBody], typed: human_input.CommandLine) -> LineView:
    row = next((row for row in catalogue.COMMANDS if row.name == typed.name), None)
    if row is not None and (answering := answer_lines.HANDLERS.get(row.name)) is not None:
        words = human_input.read_arguments(row, typed.rest)
        return await answering(gateway, call, words)
    if row is None or not row.is_page_command:
        raise _unknown(typed.name, is_known=row is not None)
    words = human_input.read_arguments(row, typed.rest)
    body = call.body
    action = SessionAction.STOP if row.name == "end" else row.action
    if row.name == "stop":
        return await _stop(gateway, call)
    if row.control is not None and not words and row.action is None:
        words = [answer_lines.only_dialog(gateway)]
    if row.control is not None and words:
        if words[0].isdigit():
            words = [answer_lines.only_dialog(gateway), words[0]]
        agent = known_participant(gateway.writer.room, words[0].removeprefix("@").lower()).id
        choice = int(words[1]) if len(words) > 1 else None
        await gateway.submit(ControlAgent(agent=agent, verb=row.control, choice=choice, **call.once))
    elif action is not None:
        live = gateway.writer.room.sessions.live()
        running = [session for session in live if body.thread in (None, session.thread)]
        if not running:
            raise Refused("no session is running", 'begin one: /mode debate "topic"')
        word = words[0].removeprefix("@").lower() if words else None
        is_agent = catalogue.ArgumentKind.MAYBE_AGENT in row.takes
        rounds = int(word) if word and not is_agent else None
        steering = SessionActionBody(agent=word if is_agent else None, rounds=rounds, id=body.id)
        act = call.with_body(steering, id=running[-1].id, change=action)
        await session_routes.act_on_session(gateway, act)
    elif row.name == "next":
        await session_routes.next_turn(gateway, call.with_body(TurnBody(thread=body.thread, id=body.id)))
    else:
        return LineView(kind=LineKind.COMMAND, name=row.name, rest=typed.rest)
    return LineView(kind=LineKind.DONE)
