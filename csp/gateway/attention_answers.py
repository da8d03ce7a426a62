"""Typed lines that answer requests for a person's attention, except those that press an agent's button."""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from csp.errors import BadInput
from csp.gateway import attention_routes, message_routes, run_routes, session_routes
from csp.gateway.gateway import Gateway
from csp.gateway.route_table import Posted
from csp.protocol.attention import ApprovalRuleBody, AttentionKind
from csp.protocol.enums import HeldReason, MessageAction, SessionAction
from csp.protocol.requests import LineBody, MessageActionBody, SessionActionBody
from csp.protocol.responses import LineKind, LineView
from csp.protocol.review_messages import Decision, RunAction, RunActionBody
from csp.room import human_input
from csp.room.attention import attention

_DONE: Final = LineView(kind=LineKind.DONE)
#: The actions that a typed line can take on a run; the rest of `csp review` needs a terminal.
_RUN_ACTIONS: Final = (RunAction.GO, RunAction.DECIDE, RunAction.HALT, RunAction.RESUME, RunAction.ABORT)
_REVIEW_FORM: Final = "/review go RUN, /review decide RUN accept|revise|abort [WHY], /review abort RUN WHY"
_DIALOGS: Final = (AttentionKind.APPROVAL, AttentionKind.DIALOG, AttentionKind.LOGIN, AttentionKind.TRUST)
Handler = Callable[[Gateway, Posted[LineBody], list[str]], Awaitable[LineView]]


def only_dialog(gateway: Gateway) -> str:
    """Return the only agent that has a dialog open; raise if none or several have one."""
    items = attention(gateway.writer.room, gateway.clock())
    return human_input.only_asker(sorted({item.agent for item in items if item.kind in _DIALOGS}))


def _left_to_page(name: str, words: list[str]) -> LineView:
    return LineView(kind=LineKind.COMMAND, name=name, rest=" ".join(words))


async def _review(gateway: Gateway, call: Posted[LineBody], words: list[str]) -> LineView:
    given = words[0].split() if words else []
    action = next((one for one in _RUN_ACTIONS if given[:1] == [one.value]), None)
    if action is None:
        return _left_to_page("review", words)
    if len(given) < 2:
        raise BadInput("expected a run", _REVIEW_FORM)
    rest, decision = given[2:], None
    if action is RunAction.DECIDE:
        decision = next((one for one in Decision if rest[:1] == [one.value]), None)
        if decision is None:
            raise BadInput("expected a decision: accept, revise or abort", _REVIEW_FORM)
        rest = rest[1:]
    body = RunActionBody(decision=decision, rationale=" ".join(rest), id=call.body.id)
    await run_routes.act_on_run(gateway, call.with_body(body, id=given[1], act=action.value))
    return _DONE


async def _decide(gateway: Gateway, call: Posted[LineBody], words: list[str]) -> LineView:
    if len(words) != 2:
        raise BadInput("expected a session and a choice", "/decide SESSION CHOICE; see: /needs")
    body = SessionActionBody(choice=words[1], id=call.body.id)
    act = call.with_body(body, id=words[0], change=SessionAction.DECIDE.value)
    await session_routes.act_on_session(gateway, act)
    return _DONE


async def _allow(gateway: Gateway, call: Posted[LineBody], words: list[str]) -> LineView:
    try:
        body = msgspec.convert({"agent": words[0], "pattern": words[1]}, ApprovalRuleBody)
    except msgspec.ValidationError as exc:
        raise BadInput(str(exc), "/allow AGENT COMMAND") from exc
    await attention_routes.add_rule(gateway, call.with_body(body))
    return _DONE


async def _unallow(gateway: Gateway, call: Posted[LineBody], words: list[str]) -> LineView:
    if not words:
        raise BadInput("expected the number of a rule", "see: /rules")
    await attention_routes.remove_rule(gateway, call.with_body(None, number=words[0]))
    return _DONE


def _on_message(action: MessageAction) -> Handler:
    async def handle(gateway: Gateway, call: Posted[LineBody], words: list[str]) -> LineView:
        if not words and action is MessageAction.CANCEL:
            return _left_to_page(action, words)
        if not words and action is MessageAction.RESEND:
            raise BadInput("expected the number of a message", "/resend 52")
        message = words[0] if words else _only_held(gateway)
        body = MessageActionBody(id=call.body.id)
        act = call.with_body(body, id=message, action=action.value)
        await message_routes.act_on_message(gateway, act)
        return _DONE

    return handle


def _only_held(gateway: Gateway) -> str:
    """Return the only message that the loop guard holds."""
    room = gateway.writer.room
    held = {
        message.id: message.seq
        for participant in room.participants.values()
        for message in room.unfinished(participant.queue)
        if message.deliveries[participant.id].reason == HeldReason.LOOP
    }
    if len(held) != 1:
        numbers = ", ".join(f"#{seq}" for seq in held.values())
        problem = f"several messages are held: {numbers}" if held else "the loop guard holds no messages"
        raise BadInput(problem, "name one: /continue N" if held else "see: /needs")
    return next(iter(held))


HANDLERS: Final[dict[str, Handler]] = {
    "review": _review,
    "decide": _decide,
    "allow": _allow,
    "unallow": _unallow,
    "continue": _on_message(MessageAction.CONTINUE),
    "cancel": _on_message(MessageAction.CANCEL),
    "resend": _on_message(MessageAction.RESEND),
}
