"""Build the prompt for a turn: the goal, the window, the round and the rules for the reply."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from csp.protocol.enums import ALL, ROUTER, AgentId, Mode, ParticipantKind
from csp.protocol.review_messages import RunRole
from csp.protocol.session_parts import PhaseKind
from csp.room.chat_markdown import first_lines, read_lines
from csp.room.commands import DEFAULT_WINDOW, WindowSize
from csp.room.sessions.modes import row_of
from csp.room.sessions.session_reducer import Sessions
from csp.room.sessions.session_state import CHARS_PER_TOKEN, Session, TurnOutput, WindowItem, cut, tokens_in
from csp.room.visibility import NO_SESSIONS, can_see_item

#: Token budget for the positions or proposals of all other agents together.
POSITION_TOKENS: Final = 8000
_AGREE: Final = re.compile(r"AGREE[.!]?[ \t]*\Z")
_PLACEHOLDER: Final = re.compile(r"\{([a-z_]+)\}")
#: The template used if a prompt has none: all values, without instructions.
BARE: Final = "{label}\n{goal}\n{window}\n{positions}\n{proposals}\n{format}"


def render(prompts: Mapping[str, str], name: str, values: Mapping[str, str]) -> str:
    """Fill in a template; the values themselves are never treated as templates."""
    template = prompts.get(name, BARE)
    text = _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), template)
    # Prompts are long, and most have no surplus blank lines, so check first.
    return (re.sub(r"\n{3,}", "\n\n", text) if "\n\n\n" in text else text).strip()


def prompt(prompts: Mapping[str, str], name: str, values: Mapping[str, str]) -> str:
    """Return the prompt for a turn, with the reply format last."""
    shapes = [render(prompts, shape, values) for shape in values["format"].split() if shape in prompts]
    return render(prompts, name, {**values, "format": "\n\n".join(shapes)})


def prompt_values(
    session: Session,
    agent: AgentId,
    kind: ParticipantKind,
    round: int,
    size: WindowSize = DEFAULT_WINDOW,
    sessions: Sessions = NO_SESSIONS,
    items: Sequence[WindowItem] | None = None,
) -> dict[str, str]:
    """Return the values for the placeholders of a turn's template; `sessions` are all sessions of the room.

    `items` is the window, if the caller already has it.
    """
    setup = session.setup
    others = [other for other in session.agents if other != agent]
    return {
        "agent": agent,
        "others": ", ".join(others) or "nobody else",
        "goal": setup.topic or "(no topic was given)",
        "mode": setup.mode,
        "phase": session.stage.name,
        "label": round_label(session, round),
        "window": visible_items(window(session, agent, size, sessions) if items is None else items, size),
        "board": "",
        "positions": positions(session, agent),
        "proposals": proposals(session),
        "labels": ", ".join(candidate.label for candidate in session.stage.candidates),
        "format": _format(session, agent, kind),
    }


def _format(session: Session, agent: AgentId, kind: ParticipantKind) -> str:
    """Return the names of the reply-format templates; features without effect are omitted."""
    if session.setup.mode is Mode.REVIEW:
        role = RunRole.BUILDER if agent == session.setup.agents[0] else RunRole.REVIEWER
        return f"{role} {'message' if kind is ParticipantKind.API else 'words'}"
    can_hand_over = bool(handoffs(session, agent))
    if kind is ParticipantKind.API:
        return "envelope" if can_hand_over else "message"
    can_end = _has_word(session, agent) and row_of(session.setup).respects_final
    return "lines" if can_hand_over else "last_line" if can_end else "words"


def handoffs(session: Session, agent: AgentId) -> tuple[AgentId, ...]:
    """Return the agents to which `agent` may hand over; none if handoffs are ignored."""
    return session.agents if _has_word(session, agent) and row_of(session.setup).follows_handoff else ()


def _has_word(session: Session, agent: AgentId) -> bool:
    """Return whether `agent` chooses the next speaker."""
    return session.stage.kind is PhaseKind.RELAY and session.setup.lead in (None, agent)


def round_label(session: Session, round: int) -> str:
    """Return the label of a round, as counted by the mode."""
    if session.setup.mode is Mode.AUTOPILOT:
        return f"Round: {round} (Autopilot)"
    cap = session.setup.rounds
    return f"Round {round}" if cap is None else f"Round {round} of {cap}"


# --- the window ----------------------------------------------------------------------------------


def window(
    session: Session,
    agent: AgentId,
    size: WindowSize = DEFAULT_WINDOW,
    sessions: Sessions = NO_SESSIONS,
) -> list[WindowItem]:
    """Return the newest items that `agent` may read, oldest first, including its unread tasks."""
    known = [item for item in session.items if can_see_item(session, item, agent, sessions)]
    if session.stage.kind is PhaseKind.BALLOT:
        # It would reveal the authors of the proposals.
        known = [item for item in known if item.sender not in session.setup.agents]
    return newest(known, size, unread_tasks(known, agent)[-1:])


def newest(
    items: Sequence[WindowItem], size: WindowSize, always: Sequence[WindowItem] = ()
) -> list[WindowItem]:
    """Return the newest items that fit into a window, oldest first, always including those in `always`."""
    kept = {item.id for item in always}
    budget = size.tokens - sum(tokens_in(item.text) for item in items if item.id in kept)
    for item in reversed(items):
        if item.id in kept:
            continue
        budget -= tokens_in(item.text)
        if len(kept) >= size.items or (budget < 0 and kept):
            break
        kept.add(item.id)
    return [item for item in items if item.id in kept]


def visible_items(items: Sequence[WindowItem], size: WindowSize = DEFAULT_WINDOW) -> str:
    """Format the items of a window as text for an agent."""
    chars = size.tokens * CHARS_PER_TOKEN
    shown = [
        f"{item.sender}{'' if item.target == ALL else f' -> {item.target}'}: {cut(item.text, chars)}"
        for item in items
    ]
    return "\n\n".join(shown) or "(nothing yet)"


def unread_tasks(items: list[WindowItem], agent: AgentId) -> list[WindowItem]:
    """Return the tasks handed over to `agent` since it last spoke."""
    tasks: list[WindowItem] = []
    for item in items:
        if item.sender == agent:
            tasks.clear()
        elif item.sender == ROUTER and item.target == agent:
            tasks.append(item)
    return tasks


# --- the others' positions and proposals ---------------------------------------------------------


def positions(session: Session, agent: AgentId) -> str:
    """Return the other agents' last positions, each limited to an equal share; empty in a ballot."""
    if session.stage.kind is PhaseKind.BALLOT:
        return ""
    others = [(name, last) for name, last in last_outputs(session) if name != agent]
    share = _share(len(others))
    return "\n\n".join(f"{name} said:\n{cut(last.text, share)}" for name, last in others)


def proposals(session: Session) -> str:
    """Return the proposals to vote on, without their authors."""
    named = session.stage.candidates
    share = _share(len(named))
    shown = [f"Proposal {one.label}:\n{cut(proposal_of(session, one.agent), share)}" for one in named]
    return "\n\n".join(shown)


def proposal_of(session: Session, agent: AgentId) -> str:
    """Return an agent's last output before the vote."""
    return next((one.text for name, one in last_outputs(session, is_over=True) if name == agent), "")


def last_outputs(session: Session, *, is_over: bool = False) -> Iterator[tuple[AgentId, TurnOutput]]:
    """Yield each agent with its last output before the vote that others may read.

    Once a phase `is_over`, its outputs may also be read.
    """
    hidden = 0 if is_over else session.seal
    for agent in session.setup.agents:
        said = session.outputs.get(agent, ())
        outputs = [one for one in said if one.phase != hidden and not 0 < session.first_ballot <= one.phase]
        if outputs:
            yield agent, outputs[-1]


def _share(count: int) -> int:
    return max(POSITION_TOKENS * CHARS_PER_TOKEN // max(count, 1), 400)


def agrees(text: str) -> bool:
    """Return whether a reply contains an AGREE line outside code."""
    return any(not line.is_code and _AGREE.match(line.text) for line in read_lines(first_lines(text)[0]))
