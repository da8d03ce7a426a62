"""What a call will cost, as far as that can be known before it is made.

The rule: its input is the prompt at 3 bytes a token with 500 tokens for the rules of the room, or as much
more than our own count as the model has ever told; its output is half as much again as its longest reply so
far, for the first one 1,000 tokens; it costs no less than its dearest call so far. Without a known price, a
call costs half as much again as the agent's dearest so far, its first one as much as the dearest of others
without a price; the very first is made alone, since nobody can tell. Calls under way count with all that
they may take, and the output of each is kept to that.
"""

from typing import Final, NamedTuple

from csp.protocol.enums import AgentId
from csp.room.sessions.session_state import Session, UsageGauge

BYTES_PER_TOKEN: Final = 3
#: What the room's rules and the form of a reply take beside the prompt.
OVERHEAD: Final = 500
FIRST_OUTPUT: Final = 1000
LEAST_OUTPUT: Final = 200
MARGIN: Final = 1.5
_MILLION: Final = 1_000_000


class CostEstimate(NamedTuple):
    """What a call may cost: as far as one can tell, at the very most; its output is kept to `max_output`."""

    cost_usd: float = 0.0
    allowed_usd: float = 0.0
    max_output: int | None = None


class OverBudget(NamedTuple):
    """Why a call is not made."""

    why: str


def estimate_cost(
    session: Session, agent: AgentId, prompt: str, before: int = 0, own_usd: float = 0.0
) -> CostEstimate | OverBudget:
    """Return what the call with this prompt may cost; `before` are tokens that come with it.

    It takes the place of a call that its agent has under way, which may cost `own_usd`.
    Only collaborations are kept from a call: elsewhere a limit of money is there for emergencies.
    """
    limit = session.setup.limits.cost
    if limit is None or session.setup.collaboration is None:
        return CostEstimate()
    price, gauge = session.setup.prices.get(agent), session.gauges.get(agent, UsageGauge())
    if price is None:
        told = [one.cost_usd for who, one in session.gauges.items() if who not in session.setup.prices]
        dark = [turn for turn in session.turns.values() if turn.agent not in (agent, *session.setup.prices)]
        if dark and not told:
            return OverBudget(
                f"nobody knows what a call of {agent} may cost until the one under way has told"
            )
        put_in, rate = 0.0, 0.0
        cost = gauge.cost_usd * MARGIN if agent in session.gauges else max(told, default=0.0)
    else:
        by_bytes = len(prompt.encode(errors="replace")) // BYTES_PER_TOKEN + OVERHEAD
        put_in = (max(by_bytes, tokens_in(prompt) + gauge.over) + before) * price.input / _MILLION
        output = max(gauge.output * MARGIN, LEAST_OUTPUT) if gauge.output else FIRST_OUTPUT
        rate = price.output
        cost = max(put_in + output * rate / _MILLION, gauge.cost_usd)
    taken = reserved(session, but=agent) + own_usd
    if cost > limit - taken:
        return OverBudget(
            f"the call of {agent} may cost {cost:.4f} USD; with {taken:.4f} of {limit:g} USD "
            "spent or under way it could pass the limit"
        )
    # Those who are asked at once share what is left.
    slots = max(session.width - len(session.turns), 1)
    allowed = max(cost, (limit - taken) / slots) if cost else 0.0
    return CostEstimate(cost, allowed, int((allowed - put_in) * _MILLION / rate) if rate else None)


def reserved(session: Session, but: AgentId | None = None) -> float:
    """Return what is spent, with all that is under way, with what calls may have cost that broke off."""
    seen = {turn: one.usage.cost_usd or 0.0 for turn, one in session.under_way.items()}
    allowed = {turn.id: turn.allowed_usd for turn in session.turns.values()}
    skipped = {turn.id for turn in session.turns.values() if turn.agent == but}
    turns = {*seen, *allowed, *session.unsettled} - skipped
    # A turn may have used more than it was allowed; it counts once.
    most = [
        max(seen.get(turn, 0.0), allowed.get(turn, 0.0), session.unsettled.get(turn, 0.0)) for turn in turns
    ]
    return session.cost_usd + sum(most)


# --- tokens ------------------------------------------------------------------------------------------


CHARS_PER_TOKEN: Final = 4
_CUT: Final = " [cut]"


def tokens_in(text: str) -> int:
    """Return about how many tokens a text takes."""
    return -(-len(text) // CHARS_PER_TOKEN)


def cut(text: str, chars: int) -> str:
    """Return the beginning of a text that is longer than `chars`, which says that it was cut."""
    return text if len(text) <= chars else text[: max(chars - len(_CUT), 0)] + _CUT
