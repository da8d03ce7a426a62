"""Routes for items that need a person's attention, and for rules that approve commands automatically."""

import msgspec

from csp.clis.registry import find_adapter, profile_names
from csp.errors import NotFound
from csp.gateway.gateway import Gateway
from csp.gateway.route_table import AnyCall, Posted
from csp.protocol.attention import (
    ApprovalRuleBody,
    ApprovalRuleDoneView,
    ApprovalRulesView,
    ApprovalRuleView,
    AttentionView,
)
from csp.protocol.enums import AgentId
from csp.room.approvals import ApprovalRule, rules_of
from csp.room.attention import attention
from csp.room.commands import AllowCommand, DisallowCommand


async def list_items(gateway: Gateway, call: AnyCall) -> AttentionView:
    await gateway.writer.settle()
    room = gateway.writer.room
    items = attention(room, gateway.clock())
    if call.caller.reader is not None:
        # Commands, screens, messages and their answers are visible only to the agent concerned and to people.
        items = tuple(msgspec.structs.replace(item, detail="", answers=()) for item in items)
    return AttentionView(items=items, seq=room.seq)


# --- approval rules ------------------------------------------------------------------------------


async def list_rules(gateway: Gateway, call: AnyCall) -> ApprovalRulesView:
    await gateway.writer.settle()
    return ApprovalRulesView(items=tuple(_view(gateway, rule) for rule in _rules(gateway)))


async def add_rule(gateway: Gateway, call: Posted[ApprovalRuleBody]) -> ApprovalRuleDoneView:
    agent = AgentId(call.body.agent.removeprefix("@").lower())
    await gateway.submit(AllowCommand(agent=agent, pattern=call.body.pattern))
    pattern = " ".join(call.body.pattern.split())
    added = next(rule for rule in _rules(gateway) if rule.number and rule[1:] == (agent, pattern))
    return ApprovalRuleDoneView(success=True, rule=_view(gateway, added))


async def remove_rule(gateway: Gateway, call: AnyCall) -> ApprovalRuleDoneView:
    word = call.path["number"].removeprefix("#")
    number = int(word) if word.isascii() and word.isdigit() and len(word) < 16 else 0
    removed = next((rule for rule in _rules(gateway) if rule.number and rule.number == number), None)
    if removed is None:
        raise NotFound(f"there is no approval rule {call.path['number'][:80]!r}", "see: csp rules")
    await gateway.submit(DisallowCommand(number=number))
    return ApprovalRuleDoneView(success=True, rule=_view(gateway, removed))


def _rules(gateway: Gateway) -> list[ApprovalRule]:
    return rules_of(gateway.writer.room, gateway.rules)


def _view(gateway: Gateway, rule: ApprovalRule) -> ApprovalRuleView:
    source = "room" if rule.number else "csp.toml"
    return ApprovalRuleView(
        number=rule.number,
        agent=rule.agent,
        pattern=rule.pattern,
        source=source,
        problem=_problem(gateway, AgentId(rule.agent)),
    )


def _problem(gateway: Gateway, agent: AgentId) -> str:
    """Return why no rule applies to an agent, as far as its profile is one of ours."""
    participant = gateway.writer.room.participants.get(agent)
    known = participant.capabilities if participant is not None else None
    profile = str(known.get("profile", "") if isinstance(known, dict) else next(iter(known or ()), ""))
    if profile not in profile_names() or find_adapter(profile).reports_commands:
        return ""
    return f"no effect: {agent} does not report its commands to CSP"
