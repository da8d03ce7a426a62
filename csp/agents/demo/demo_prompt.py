"""Parse a demo agent's prompt: the text in its terminal, and the state of its turn in the room.

A message is answered according to its text. A turn's task (a position, a vote, the next step of a review) is
read from the room with the same HTTP calls that any agent may make, so the wording of prompts does not
matter.
"""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import msgspec

from csp.errors import Broken, CspError, TooMany
from csp.http_client import GatewayClient, newest
from csp.protocol.enums import Mode
from csp.protocol.responses import ModeView, SessionDetailView, SessionsView
from csp.protocol.review_messages import RunDetail, RunsView
from csp.protocol.session_parts import Status
from csp.room.sessions.modes import MODES

#: How long to retry an unreachable room; a killed gateway is restarted within seconds.
PATIENCE_S: Final = 60.0
_PAUSE_S: Final = 0.2
#: The number of a session's last messages to read.
WINDOW: Final = 40
_SPOKEN: Final = "human_message,agent_call,agent_response"
_HEADER: Final = re.compile(
    r"\[(?:from (?P<sender>[a-z0-9-]{1,32})|YOUR TURN) #(?P<tag>[^\]\s]{1,128})\][ \t]*"
)
_FOOTER: Final = re.compile(r"\n?\[end #[^\]\n]{1,800}\]\s*\Z")


class Kind(StrEnum):
    """The kind of reply that is required."""

    TALK = "talk"
    POSITION = "position"
    PROPOSAL = "proposal"
    REBUTTAL = "rebuttal"
    VOTE = "vote"
    WORK = "work"
    LEAD = "lead"
    SYNTHESIS = "synthesis"
    REVIEW = "review"


#: Kinds by phase name, as in csp.room.sessions.modes; for other phases, the kind depends on the mode.
_PHASES: Final = {
    "positions": Kind.POSITION,
    "responses": Kind.REBUTTAL,
    "proposals": Kind.PROPOSAL,
    "ballot": Kind.VOTE,
    "synthesis": Kind.SYNTHESIS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A participant's message, with the target and the task of its handoff."""

    name: str
    text: str
    to: str = ""
    task: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPrompt:
    """A prompt with all information that the reply depends on; `others` are possible handoff targets."""

    kind: Kind = Kind.TALK
    text: str
    me: str
    sender: str = ""
    topic: str = ""
    said: tuple[Said, ...] = ()
    #: The labels of a ballot, with their texts.
    options: tuple[tuple[str, str], ...] = ()
    others: tuple[str, ...] = ()
    round: int | None = None
    last_round: int | None = None
    is_autopilot: bool = False
    can_hand_over: bool = False
    can_finish: bool = False
    run: RunDetail | None = None

    @property
    def is_turn(self) -> bool:
        return bool(self.topic)

    @property
    def theirs(self) -> tuple[Said, ...]:
        """The messages from other participants."""
        return tuple(one for one in self.said if one.name != self.me)

    @property
    def task(self) -> str:
        """The task most recently handed to this agent."""
        return next((one.task for one in reversed(self.said) if one.to == self.me), "")


def turn_of(prompt: str) -> str:
    """Return the id of the turn that a prompt belongs to, or an empty string for a message."""
    header = _HEADER.match(prompt)
    return header["tag"] if header and not header["sender"] else ""


def message(prompt: str, me: str) -> DemoPrompt:
    """Return a prompt to which the reply depends only on its text."""
    header = _HEADER.match(prompt)
    if not header:
        return DemoPrompt(text=prompt.strip(), me=me)
    body = _FOOTER.sub("", prompt[header.end() :].strip("\n"))
    return DemoPrompt(text=body, me=me, sender=header["sender"] or "")


def asked(
    prompt: str, me: str, view: ModeView, said: tuple[Said, ...] = (), run: RunDetail | None = None
) -> DemoPrompt:
    """Return the prompt for a turn in a session."""
    is_lead = view.mode is Mode.ORCHESTRATOR and view.turn_order[:1] == (me,)
    decides = is_lead or view.mode is not Mode.ORCHESTRATOR
    kind = _PHASES.get(view.phase or "", Kind.LEAD if is_lead else Kind.WORK)
    if view.mode in (Mode.SINGLE, Mode.REVIEW) and kind is Kind.WORK:
        kind = Kind.TALK if view.mode is Mode.SINGLE else Kind.REVIEW
    topic = view.topic or "(no topic was given)"
    body = message(prompt, me).text
    found = DemoPrompt(
        kind=kind,
        text=topic if kind is Kind.TALK else body,
        me=me,
        topic=topic,
        said=said,
        options=tuple((label, one["text"]) for label, one in view.proposals.items()),
        others=tuple(name for name in view.turn_order if name != me),
        round=view.round + 1,
        last_round=view.max_rounds or None,
        is_autopilot=view.mode is Mode.AUTOPILOT,
        can_hand_over=decides and MODES[view.mode].follows_handoff,
        can_finish=decides and (MODES[view.mode].respects_final or view.mode is Mode.AUTOPILOT),
        run=run,
    )
    # If nobody else has posted a message, there is nothing to rebut.
    is_lonely = kind is Kind.REBUTTAL and all(one.name == "human" for one in found.theirs)
    return replace(found, kind=Kind.POSITION) if is_lonely else found


def read_prompt(prompt: str, me: str, env: Mapping[str, str]) -> DemoPrompt:
    """Return a prompt with the state of its turn; if the room has no such turn, treat it as a message."""
    turn, url, token = turn_of(prompt), env.get("CSP_GATEWAY_URL"), env.get("CSP_AUTH_TOKEN")
    deadline = time.monotonic() + PATIENCE_S
    while turn and url and token:
        try:
            return _read_turn(GatewayClient(url, token), prompt, me, turn) or message(prompt, me)
        except (Broken, TooMany):
            if time.monotonic() > deadline:
                break
            time.sleep(_PAUSE_S)
        except (CspError, msgspec.ValidationError):
            break  # the room has another version: any reply is better than none
    return message(prompt, me)


def _read_turn(room: GatewayClient, prompt: str, me: str, turn: str) -> DemoPrompt | None:
    sessions = msgspec.convert(room.get("/sessions"), SessionsView).items
    for session in reversed([one for one in sessions if one.status is not Status.ENDED]):
        view = msgspec.convert(room.get(f"/sessions/{session.id}"), SessionDetailView).orchestration
        if view.turns.get(me) != turn:
            continue
        events = newest(room, WINDOW, session=session.id, types=_SPOKEN)
        run = None
        if view.mode is Mode.REVIEW:
            runs = msgspec.convert(room.get("/runs"), RunsView).items
            ids = [one.id for one in runs if one.session_id == session.id]
            run = msgspec.convert(room.get(f"/runs/{ids[-1]}"), RunDetail) if ids else None
        said = []
        for event in events:
            handoff, text = event.get("handoff") or {}, event.get("text", "")
            to, task = handoff.get("to", ""), handoff.get("task", "")
            said.append(Said(name=event["sender"], text=text, to=to, task=task))
        return asked(prompt, me, view, tuple(said), run)
    return None
