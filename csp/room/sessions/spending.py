"""Who has used how many tokens of which model, what that cost."""

from typing import Final

import msgspec
from msgspec.structs import replace

from csp.protocol.enums import AgentId, TurnId
from csp.protocol.requests import Usage
from csp.protocol.session_parts import Price

#: Models come by the names their agents give them; beyond so many rows the name is left out.
MOST_ROWS: Final = 256
#: Turns whose reply has not said yet what it used; beyond so many the oldest is taken as it was last seen.
MOST_UNDER_WAY: Final = 256
_MILLION: Final = 1_000_000


class Spent(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the replies of one agent took of one model; some may have no known price, or be estimates."""

    agent: AgentId
    model: str = ""
    replies: int = 0
    input: int = 0
    output: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    estimated: int = 0
    cached: int = 0

    @property
    def tokens(self) -> int:
        return self.input + self.output

    @property
    def new(self) -> int:
        """What limits count: all but the input that was read from a cache."""
        return self.tokens - self.cached

    @property
    def known_cost(self) -> float | None:
        """What it cost; None where no reply has a price."""
        return None if self.unpriced == self.replies else self.cost_usd


class RunningUsage(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a turn has used so far."""

    agent: AgentId
    usage: Usage


Ledger = tuple[Spent, ...]
Unsettled = dict[TurnId, RunningUsage]


def priced(usage: Usage, price: Price | None) -> Usage:
    """Return what a reply took with what it cost, where its agent tells its tokens alone."""
    is_known = usage.cost_usd is not None or usage.unpriced
    if price is None or is_known:
        return usage
    read = price.input if price.cached is None else price.cached
    uncached = usage.input - usage.cached
    cost = (uncached * price.input + usage.cached * read + usage.output * price.output) / _MILLION
    return replace(usage, cost_usd=cost) if cost else usage


def spend(ledger: Ledger, agent: AgentId, usage: Usage) -> Ledger:
    """Return the ledger with one more reply in it."""
    model = usage.model or ""
    place = _place(ledger, agent, model)
    if place is None and len(ledger) >= MOST_ROWS:
        model = ""
        place = _place(ledger, agent, model)
    before = Spent(agent, model) if place is None else ledger[place]
    after = Spent(
        agent,
        model,
        replies=before.replies + 1,
        input=before.input + usage.input,
        output=before.output + usage.output,
        cost_usd=before.cost_usd + (usage.cost_usd or 0.0),
        unpriced=before.unpriced + (usage.cost_usd is None),
        estimated=before.estimated + usage.estimated,
        cached=before.cached + usage.cached,
    )
    return (*ledger, after) if place is None else (*ledger[:place], after, *ledger[place + 1 :])


def spent_so_far(ledger: Ledger, unsettled: Unsettled) -> Ledger:
    """Return the ledger as if every turn under way had ended with what it has used so far."""
    for turn in unsettled.values():
        ledger = spend(ledger, turn.agent, turn.usage)
    return ledger


def is_more(usage: Usage, known: RunningUsage | None) -> bool:
    """Tell whether a count goes beyond what is known of the same turn; counts only grow."""
    return known is None or usage.tokens > known.usage.tokens


def without(unsettled: Unsettled, turn: str | None) -> Unsettled:
    """Return what is under way without one turn."""
    return {key: one for key, one in unsettled.items() if key != turn}


def _place(ledger: Ledger, agent: AgentId, model: str) -> int | None:
    return next((i for i, row in enumerate(ledger) if (row.agent, row.model) == (agent, model)), None)
