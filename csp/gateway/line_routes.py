"""The route for lines that people type: the gateway parses them, so that clients need no parser."""

import msgspec

from csp.config import nearest
from csp.errors import BadInput, NotFound, Refused
from csp.gateway import attention_answers, operations, session_routes
from csp.gateway.gateway import Gateway
from csp.gateway.route_table import Posted, answered
from csp.journal.history_query import HistoryQuery
from csp.protocol import catalogue
from csp.protocol.enums import ALL, DEFAULT_THREAD, AgentId, SessionAction
from csp.protocol.requests import LineBody, MessageBody, ModeBody, SessionActionBody, StopBody, TurnBody
from csp.protocol.responses import LineKind, LineView
from csp.room import human_input
from csp.room.commands import ControlAgent
from csp.room.membership import known_participant
from csp.room.sessions.modes import mode_names

_SPEECH = frozenset({"agent_response", "agent_call"})
_NEWEST = 50


async def line(gateway: Gateway, call: Posted[LineBody]) -> LineView:
    """Execute a typed line once; return a command of the user interface itself to the caller."""
    body = call.body
    if await answered(gateway, call) is not None:
        return LineView(kind=LineKind.DONE)
    match human_input.read_line(body.line):
        case human_input.EmptyLine():
            return LineView(kind=LineKind.EMPTY)
        case human_input.InvalidLine(problem=problem, hint=hint):
            raise BadInput(problem, hint)
        case human_input.SetTarget(to=to):
            return _aim(gateway, to)
        case human_input.StopLine():
            return await _stop(gateway, call, body.line.strip())
        case human_input.ModeLine() as wish:
            return await _set_mode(gateway, call, wish)
        case human_input.CommandLine() as typed:
            return await _run(gateway, call, typed)
        case human_input.MessageLine() as said:
            return await _send(gateway, call, said)


def _aim(gateway: Gateway, to: str) -> LineView:
    """Return the new recipient of plain text."""
    known = [
        name
        if name == ALL or name in gateway.settings.groups
        else known_participant(gateway.writer.room, name).id
        for name in to.split(",")
    ]
    return LineView(kind=LineKind.TARGET, to=",".join(known))


async def _set_mode(gateway: Gateway, call: Posted[LineBody], wish: human_input.ModeLine) -> LineView:
    body = call.body
    if asked := _question_about(gateway, wish, body):
        return asked
    fields = human_input.mode_fields(wish) | {"thread": body.thread, "id": body.id}
    try:
        mode = msgspec.convert(fields, ModeBody)
    except msgspec.ValidationError as exc:
        raise BadInput(str(exc), human_input.MODE_USAGE) from exc
    await session_routes.set_mode(gateway, call.with_body(mode))
    return LineView(kind=LineKind.DONE)


def _question_about(gateway: Gateway, wish: human_input.ModeLine, body: LineBody) -> LineView | None:
    """Return the question to ask before a mode is started, if there is one."""
    if wish.mode not in mode_names():
        return None
    if wish.needs_topic:
        return LineView(kind=LineKind.ASK_TOPIC, name=wish.mode, question=human_input.TOPIC_QUESTION)
    running = gateway.writer.room.sessions.live_in(body.thread or DEFAULT_THREAD)
    is_free = running is None or wish.mode == human_input.FREEFORM or wish.replaces or body.confirmed
    if running is None or is_free:
        return None
    question = human_input.replace_question(running.setup.mode)
    return LineView(kind=LineKind.ASK_REPLACE, name=wish.mode, question=question)


async def _send(gateway: Gateway, call: Posted[LineBody], said: human_input.MessageLine) -> LineView:
    body = call.body
    if human_input.doubt_about(said) and not body.confirmed:
        return LineView(kind=LineKind.CONFIRM, question=human_input.question_before_sending(said, body.to))
    last: dict[str, str] = {}
    for name in human_input.quoted_agents(said.text):
        page = await gateway.history.page(HistoryQuery(limit=_NEWEST, agent=AgentId(name), types=_SPEECH))
        items = [msgspec.json.decode(found) for found in page.lines]
        # The agent's last message.
        text = next((str(item["text"]) for item in reversed(items) if item["sender"] == name), "")
        known = list(map(str, gateway.writer.room.participants))
        if not text and name not in known:
            raise human_input.unknown_quote(name, nearest(name, known))
        if not text:
            raise NotFound(f"{name} has not sent a message yet", "see: csp history")
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
    """Stop the thread in view, or everything; a typed stop word is recorded in the conversation."""
    body = call.body
    if word:
        # Use the thread of a running session, so that the word stops it.
        running = list(gateway.writer.room.sessions.live())
        thread = body.thread or (running[-1].thread if running else None)
        message = MessageBody(to="all", content=word, thread=thread, id=body.id)
        await operations.send_message(gateway, call.with_body(message))
    stopping = StopBody(thread=body.thread, all=body.thread is None, id=body.id)
    await session_routes.stop(gateway, call.with_body(stopping))
    return LineView(kind=LineKind.DONE)


async def _run(gateway: Gateway, call: Posted[LineBody], typed: human_input.CommandLine) -> LineView:
    row = next((row for row in catalogue.COMMANDS if row.name == typed.name), None)
    if row is not None and (answering := attention_answers.HANDLERS.get(row.name)) is not None:
        words = human_input.read_arguments(row, typed.rest)
        return await answering(gateway, call, words)
    if row is None or not row.is_page_command:
        if row is not None:
            raise NotFound(f"/{row.name} works only in the room's pane", "see: /help")
        known = [f"/{row.name}" for row in catalogue.COMMANDS if row.is_page_command]
        raise NotFound(f"unknown command /{typed.name}", nearest(f"/{typed.name}", known) or "see: /help")
    words = human_input.read_arguments(row, typed.rest)
    body = call.body
    action = SessionAction.STOP if row.name == "end" else row.action
    if row.name == "stop":
        return await _stop(gateway, call)
    if row.control is not None and (words or row.action is None):
        named = (words[0] if words else "") or attention_answers.only_dialog(gateway)
        agent = known_participant(gateway.writer.room, named.removeprefix("@").lower()).id
        choice = int(words[1]) if len(words) > 1 else None
        await gateway.submit(ControlAgent(agent=agent, verb=row.control, choice=choice, **call.once))
    elif action is not None:
        live = gateway.writer.room.sessions.live()
        running = [session for session in live if body.thread in (None, session.thread)]
        if not running:
            raise Refused("no session is running", 'start one: /mode debate "topic"')
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
