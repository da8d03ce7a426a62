"""Compute the items that need a person from the state of a room.

Nothing is stored: an item exists as long as its cause does. Each item has the lines that answer it, as
a person would type them.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from csp.protocol.attention import EVENTS as EVENTS
from csp.protocol.attention import AttentionAnswer, AttentionItem, AttentionKind, AttentionLevel
from csp.protocol.catalogue import why_held
from csp.protocol.enums import AgentId, AgentState, DeliveryState, HeldReason, ParticipantKind
from csp.protocol.requests import Choice
from csp.protocol.review_messages import RunPhase
from csp.protocol.session_parts import Wait, WaitKind
from csp.room.approval_rules import exact_rule
from csp.room.dialogs import asks_command, command_first, subject_of
from csp.room.room_state import Participant, Room
from csp.room.runs.run_state import PLAN_TO_APPROVE, ReviewRun
from csp.room.sessions.decisions import (
    CONTINUE,
    NONE,
    choices_for,
    is_cut_short,
    is_held,
    is_near_limit,
    is_tied,
    limited_agents,
)
from csp.room.sessions.session_state import Session, cut

K, L = AttentionKind, AttentionLevel
MAX_DETAIL: Final = 2000
#: Maximum number of an agent's messages to examine; nobody would answer more of them one by one.
MAX_QUEUE: Final = 1000
_YES: Final = re.compile(r"(?i)\s*(?:yes|allow|approve|accept|run|proceed|ok)\b")
_NO: Final = re.compile(r"(?i)\s*(?:no|deny|reject|don't|do not|cancel|abort|decline)\b")
#: The kinds of screens, as named by sidecars.
_SCREENS: Final = {"login": K.LOGIN, "trust": K.TRUST, "question": K.QUESTION}
_TITLES: Final = {
    K.LOGIN: "{agent} asks you to log in",
    K.TRUST: "{agent} asks whether to trust its folder",
    K.QUESTION: "{agent} asks you a question",
    K.DIALOG: "{agent} has a dialog open",
    K.STUCK: "{agent} needs you in its pane",
}
_ASKING: Final = (AgentState.NEEDS_APPROVAL, AgentState.NEEDS_HUMAN)
#: Kinds of participants whose end is reported: others come and go freely.
_STAY: Final = (ParticipantKind.CLI, ParticipantKind.API, ParticipantKind.DEMO)


def attention(room: Room, now: float) -> tuple[AttentionItem, ...]:
    """Return everything that needs a person, oldest first."""
    items = [item for participant in room.participants.values() for item in _of_agent(room, participant, now)]
    items += [item for session in room.sessions.by_id.values() for item in _of_session(room, session)]
    items += [item for run in room.runs.by_id.values() for item in _of_run(run)]
    return tuple(sorted(items, key=lambda item: (item.since, item.id)))


def _answer(key: str, label: str, line: str) -> AttentionAnswer:
    return AttentionAnswer(key=key, label=label, line=line)


# --- agents --------------------------------------------------------------------------------------


def _of_agent(room: Room, one: Participant, now: float) -> Iterator[AttentionItem]:
    if not one.online:
        if one.kind in _STAY:
            restart = _answer("r", "Restart it", f"/restart {one.id}")
            remove = _answer("x", "Remove it", f"/remove {one.id}")
            yield AttentionItem(
                id=f"{K.ENDED}:{one.id}",
                kind=K.ENDED,
                agent=one.id,
                since=one.since or one.seen,
                title=f"{one.id} has ended",
                # Only a sidecar can be restarted from here.
                answers=(restart, remove) if one.launch else (remove,),
                level=L.ACTION if _is_waited_for(room, one.id) else L.INFO,
            )
    elif one.state in _ASKING and one.answering is None:
        yield _asking(one)
    elif _is_limited(room, one, now):
        yield AttentionItem(
            id=f"{K.LIMITED}:{one.id}",
            kind=K.LIMITED,
            agent=one.id,
            since=one.since or one.seen,
            title=f"{one.id} has reached a usage limit",
            detail=cut(one.detail, MAX_DETAIL),
            answers=(_answer("f", "Open its pane", f"/focus {one.id}"),),
            level=L.INFO,
        )
    if one.question is not None:
        yield AttentionItem(
            id=f"question:{one.id}:{one.question.message}",
            kind=K.QUESTION,
            agent=one.id,
            since=one.question.at,
            title=f"{one.id} asks you a question",
            detail=one.question.text,
            answers=(_answer("r", "Reply", f"@{one.id}"),),
            level=L.INFO,
        )
    yield from _held(room, one)


def _is_waited_for(room: Room, agent: AgentId) -> bool:
    """Return whether a session waits until an agent is back."""
    turns = (session.turns.get(agent) for session in room.sessions.live())
    return any(turn is not None and turn.wait is not None for turn in turns)


def _is_limited(room: Room, one: Participant, now: float) -> bool:
    """Return whether to report an agent's usage limit on its own; a session that waits for it reports it."""
    is_current = one.state is AgentState.LIMITED and (one.until is None or one.until > now)
    return is_current and all(
        one.id not in limited_agents(session) for session in room.sessions.live_with(one.id)
    )


def _asking(one: Participant) -> AttentionItem:
    """Return the item for an agent that asks something on its screen or that cannot continue."""
    dialog = one.dialog
    if one.state is AgentState.NEEDS_APPROVAL:
        kind = _SCREENS.get(one.asks, K.APPROVAL if one.asks in ("", "permission") else K.DIALOG)
    else:
        kind = _SCREENS.get(one.asks, K.DIALOG if dialog is not None or one.asks else K.STUCK)
    subject = command_first(subject_of(dialog).strip()) if dialog is not None else ""
    question = dialog.question if dialog is not None else ""
    answers = (*_choices(one), _answer("f", "Open its pane", f"/focus {one.id}"))
    if one.paused and kind is K.STUCK:
        answers = (_answer("y", "Resume it", f"/resume {one.id}"), *answers)
    title = _TITLES.get(kind, "").format(agent=one.id) or _wanted(one)
    # An approval is about its command. In a menu the question comes first: above it anything may stand.
    parts = [subject] if kind is K.APPROVAL and subject else [question, subject]
    return AttentionItem(
        id=f"{kind}:{one.id}",
        kind=kind,
        agent=one.id,
        since=one.since or one.seen,
        title=title,
        detail=cut("\n".join(filter(None, parts)) or one.detail, MAX_DETAIL),
        answers=answers,
    )


def _wanted(one: Participant) -> str:
    tool = one.dialog.tool if one.dialog is not None else ""
    is_command = one.dialog is not None and asks_command(one.dialog)
    if is_command:
        return f"{one.id} asks to run a command"
    return f"{one.id} asks to use {tool}" if tool else f"{one.id} asks for your approval"


def _choices(one: Participant) -> Iterator[AttentionAnswer]:
    """Yield the answers to a dialog: yes, the other choices, no; without choices a plain yes and no.

    If no choice of a menu means yes or no, a plain yes would select an arbitrary one.
    """
    choices = one.dialog.choices if one.dialog is not None else ()
    if one.dialog is None and one.state is AgentState.NEEDS_HUMAN:
        return
    yes = next((each for each in choices if _YES.match(each.label)), None)
    no = next((each for each in choices if _NO.match(each.label)), None)
    is_plain = one.state is AgentState.NEEDS_APPROVAL and (not choices or bool(yes or no))
    if yes is not None or is_plain:
        yield _answer("y", "Approve", f"/approve {one.id}{_number(yes)}")
    for each in choices:
        if each not in (yes, no):
            yield _answer(str(each.number), each.label, f"/approve {one.id} {each.number}")
    if no is not None or is_plain:
        yield _answer("n", "Deny", f"/deny {one.id}{_number(no)}")
    command = one.dialog.runs if one.dialog is not None else ""
    if rule := exact_rule(command):
        yield _answer("a", f"Always allow {command!r}", f"/allow {one.id} {rule}")


def _number(choice: Choice | None) -> str:
    return f" {choice.number}" if choice is not None else ""


# --- messages --------------------------------------------------------------------------------------


def _held(room: Room, one: Participant) -> Iterator[AttentionItem]:
    """Yield an agent's messages that wait for a person to act."""
    for message in room.unfinished(islice(one.queue, MAX_QUEUE)):
        delivery = message.deliveries[one.id]
        if delivery.state is not DeliveryState.HELD:
            continue
        if delivery.reason == HeldReason.LOOP:
            yield AttentionItem(
                id=f"{K.HELD}:{one.id}:{message.id}",
                kind=K.HELD,
                agent=one.id,
                session=message.session or "",
                since=delivery.at,
                title=f"#{message.seq} from {message.sender} to {one.id} is held: "
                "too many agent replies in a row",
                detail=cut(message.text, MAX_DETAIL),
                answers=(
                    _answer("y", "Release it", f"/continue {message.seq}"),
                    _answer("n", "Cancel it", f"/cancel {message.seq}"),
                ),
            )
        elif delivery.reason == HeldReason.STUCK and one.online:
            yield AttentionItem(
                id=f"{K.STUCK}:{one.id}:{message.id}",
                kind=K.STUCK,
                agent=one.id,
                since=delivery.at,
                title=f"#{message.seq} is stuck in {one.id}'s input box",
                detail=cut(message.text, MAX_DETAIL),
                answers=(_answer("f", "Open its pane", f"/focus {one.id}"),),
            )


# --- sessions --------------------------------------------------------------------------------------


def _of_session(room: Room, session: Session) -> Iterator[AttentionItem]:
    yield from _obstructed(session)
    mode = session.setup.mode.replace("_", " ")
    level, since = L.INFO, session.ended_at or session.started_at
    detail = session.setup.topic
    more: tuple[AttentionAnswer, ...] = ()
    if is_held(session):
        kind, level, title = K.BUDGET, L.ACTION, f"{session.id} ({mode}) has reached its limit: continue?"
        since = session.paused_at or since
    elif waiting := limited_agents(session):
        kind, since = K.LIMITED, min(_wait_of(session, agent).since for agent in waiting)
        level, title = _limited(session, mode, waiting)
        agents = filter(None, map(room.participants.get, waiting))
        detail = "\n".join(one.detail for one in agents if one.detail) or detail
        more = tuple(_answer("f", f"Open {agent}'s pane", f"/focus {agent}") for agent in waiting[:1])
    elif is_tied(room.sessions, session):
        kind, level, title = K.TIE, L.ACTION, f"The vote of {session.id} ({mode}) is tied"
    elif is_cut_short(room.sessions, session):
        kind, title = K.BUDGET, f"{session.id} ({mode}) was stopped by its limit"
    elif is_near_limit(session):
        kind, title, since = (
            K.BUDGET,
            f"{session.id} ({mode}) has nearly reached its limit",
            session.warned_at,
        )
    else:
        return
    choices = choices_for(room.sessions, session)
    yield AttentionItem(
        id=f"{kind}:{session.id}",
        kind=kind,
        session=session.id,
        since=since,
        title=title,
        detail=cut(detail, MAX_DETAIL),
        answers=(
            *(
                _answer(_KEYS.get(choice, choice[0].lower()), label, f"/decide {session.id} {choice}")
                for choice, label in choices.items()
            ),
            *more,
        ),
        level=level,
    )


def _obstructed(session: Session) -> Iterator[AttentionItem]:
    """Yield the turns whose prompts a person has kept from being typed for a while."""
    for turn in session.turns.values():
        why = turn.wait.detail if turn.wait is not None and turn.warned else ""
        if why not in (HeldReason.DRAFT, HeldReason.PAUSED):
            continue
        held = why_held(why)
        resume = _answer("y", "Resume it", f"/resume {turn.agent}")
        focus = _answer("f", "Open its pane", f"/focus {turn.agent}")
        yield AttentionItem(
            id=f"{K.STUCK}:{turn.agent}:{turn.id}",
            kind=K.STUCK,
            agent=turn.agent,
            session=session.id,
            since=turn.asked_at,
            title=f"{turn.agent} cannot be asked: {held.text if held is not None else why}",
            answers=(resume, focus) if why == HeldReason.PAUSED else (focus,),
        )


_KEYS: Final = {NONE: "x", CONTINUE: "y"}


def _wait_of(session: Session, agent: AgentId) -> Wait:
    wait = session.turns[agent].wait
    return wait or Wait(kind=WaitKind.RESET, since=session.turns[agent].since)


def _limited(session: Session, mode: str, agents: tuple[AgentId, ...]) -> tuple[AttentionLevel, str]:
    """Return the level and the title of the item about agents at their usage limits."""
    unknown = [agent for agent in agents if _wait_of(session, agent).at is None]
    if unknown:
        names = " and ".join(unknown)
        return L.ACTION, f"{names} is at a usage limit with an unknown reset: ask it now?"
    names = " and ".join(f"{agent}'s" for agent in agents)
    return L.INFO, f"{session.id} ({mode}) waits for the reset of {names} usage limit"


# --- review runs -----------------------------------------------------------------------------------


def _of_run(run: ReviewRun) -> Iterator[AttentionItem]:
    if run.is_over or run.phase not in _RUN_ANSWERS:
        return
    is_plan = run.phase is RunPhase.APPROVAL
    steps = enumerate(run.plan.steps, 1) if run.plan is not None and is_plan else ()
    # The title asks for the approval already.
    why = "" if is_plan and run.why == PLAN_TO_APPROVE else run.why
    parts = (run.goal, why, *(f"{number}. {step}" for number, step in steps))
    yield AttentionItem(
        id=f"{K.PLAN if is_plan else K.DECISION}:{run.id}",
        kind=K.PLAN if is_plan else K.DECISION,
        agent=run.builder,
        session=run.session,
        run=run.id,
        since=run.since,
        title=_RUN_TITLES[run.phase].format(run=run.id),
        detail=cut("\n".join(part for part in parts if part), MAX_DETAIL),
        answers=tuple(
            _answer(key, label, line.format(run=run.id)) for key, label, line in _RUN_ANSWERS[run.phase]
        ),
    )


_RUN_TITLES: Final = {
    RunPhase.APPROVAL: "{run} needs you: approve the plan?",
    RunPhase.ESCALATED: "{run} needs you: accept the work?",
    RunPhase.HALTED: "{run} is halted: continue?",
}
_ABORT: Final = ("x", "Abort", "/review abort {run} aborted by a person")
_RUN_ANSWERS: Final = {
    RunPhase.APPROVAL: (
        ("y", "Approve the plan", "/review go {run}"),
        ("n", "Ask for another plan", "/review decide {run} revise"),
        _ABORT,
    ),
    RunPhase.ESCALATED: (
        ("y", "Accept the work", "/review decide {run} accept"),
        ("n", "Ask for one more revision", "/review decide {run} revise"),
        _ABORT,
    ),
    RunPhase.HALTED: (("y", "Continue", "/review resume {run}"), _ABORT),
}
