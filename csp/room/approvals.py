"""Apply approval rules: people add and remove them, and the room answers the dialogs that they cover."""

from typing import Final, NamedTuple

from csp.errors import BadInput, NotFound, Refused
from csp.protocol.enums import ALL, HUMAN, AgentId, AgentState, ControlVerb
from csp.protocol.events import ControlSent, StateChanged
from csp.protocol.notices import NoticeCode
from csp.room.agent_names import nearest
from csp.room.approval_rules import ONLY, covers, is_plain_command
from csp.room.commands import AllowCommand, DisallowCommand, RoomRules
from csp.room.room_draft import RoomDraft
from csp.room.room_state import Room

#: The time within which the agent must press the key.
APPROVE_TTL_S: Final = 30.0
MAX_RULES: Final = 100
#: The kinds of dialogs that ask about a tool.
_PERMISSIONS: Final = ("", "permission")


class ApprovalRule(NamedTuple):
    """An approval rule; a rule from the settings has no number."""

    number: int
    agent: str
    pattern: str

    @property
    def name(self) -> str:
        """The name of the rule in notices."""
        where = f"#{self.number}" if self.number else "csp.toml"
        return f"rule {where} ({self.pattern})"


def rules_of(room: Room, rules: RoomRules) -> list[ApprovalRule]:
    """Return all rules: the room's own rules by number, followed by those from the settings."""
    given = [
        ApprovalRule(number, one.id, pattern)
        for one in room.participants.values()
        for number, pattern in one.rules.items()
    ]
    return [*sorted(given), *(ApprovalRule(0, one.agent, one.pattern) for one in rules.allowed)]


def allow(draft: RoomDraft, command: AllowCommand) -> None:
    """Add a rule, and answer the open dialog if the rule covers it."""
    participant = draft.room.participants.get(command.agent)
    if participant is None:
        known = [str(agent) for agent in draft.room.participants]
        raise NotFound(f"unknown agent {command.agent!r}", nearest(command.agent, known))
    pattern = " ".join(command.pattern.split())
    if not is_plain_command(pattern) or pattern == ONLY:
        problem = f"a rule cannot contain shell syntax or line breaks, got {command.pattern[:80]!r}"
        raise BadInput(problem, "give the first words of a command: pytest -q")
    if pattern in participant.rules.values():
        return
    if len(participant.rules) >= MAX_RULES:
        raise Refused(
            f"{participant.id} has {MAX_RULES} approval rules, the maximum", "remove some: csp unallow N"
        )
    header = draft.header(participant.id, ALL, f"{participant.id} may run: {pattern}")
    draft.emit(StateChanged(*header, allow=pattern))
    approve_by_rule(draft, participant.id)


def disallow(draft: RoomDraft, command: DisallowCommand) -> None:
    """Remove one of the room's rules."""
    rules = rules_of(draft.room, draft.rules)
    found = next((rule for rule in rules if rule.number and rule.number == command.number), None)
    if found is None:
        known = ", ".join(f"{rule.number}" for rule in rules if rule.number) or "none"
        raise NotFound(f"there is no approval rule {command.number}", f"known: {known}; see: csp rules")
    text = f"{found.agent} has to ask again for: {found.pattern}"
    header = draft.header(AgentId(found.agent), ALL, text)
    draft.emit(StateChanged(*header, disallow=found.number))


def approve_by_rule(draft: RoomDraft, agent: AgentId) -> None:
    """Approve an agent's dialog once if a rule covers its command, and notify people of the rule."""
    one = draft.room.participants[agent]
    command = one.dialog.runs if one.dialog is not None else ""
    is_open = one.online and one.state is AgentState.NEEDS_APPROVAL and one.answering is None
    if not command or not is_open or one.asks not in _PERMISSIONS:
        return
    rules = (rule for rule in rules_of(draft.room, draft.rules) if rule.agent == agent)
    rule = next((rule for rule in rules if covers(rule.pattern, command)), None)
    if rule is None:
        return
    header = draft.message_header(HUMAN, agent, ControlVerb.APPROVE)
    expires = draft.clock + APPROVE_TTL_S
    draft.emit(ControlSent(*header, control=ControlVerb.APPROVE, expires=expires, about=command))
    remedy = f"csp unallow {rule.number}" if rule.number else "remove it from csp.toml"
    draft.notice(
        HUMAN, NoticeCode.APPROVED_BY_RULE(agent=agent, rule=rule.name, command=command, remedy=remedy)
    )
