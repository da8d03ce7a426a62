"""What was said while nobody looked."""

from typing import Final

from csp.client.background_tasks import in_thread
from csp.http_client import GatewayClient, field, newest
from csp.human.event_lines import said_line, spoken_in
from csp.human.safe_text import count
from csp.human.theme import Theme

MAX_AWAY: Final = 30
MAX_EARLIER: Final = 8


async def missed_lines(gateway: GatewayClient, look: Theme, seq: int, seen: int | None) -> list[str]:
    """Return what was said after `seen` up to `seq`; to who was never here, the end of the history."""
    is_back = seen is not None and seen <= seq
    limit = MAX_AWAY + 1 if is_back else MAX_EARLIER
    items = await in_thread(lambda: newest(gateway, limit, before=seq + 1))
    if is_back:
        items = [item for item in items if field(item, "seq", int) > (seen or 0)]
    if not items:
        return []
    shown = items[-MAX_AWAY:]
    heading = "since you were away" if is_back else "the last words here"
    more = ", the newest of more; /history shows older ones" if len(items) > len(shown) else ""
    return [
        look.faint(f"--- {heading} ({count(len(shown), 'message')}{more}) ---"),
        *(said_line(look, spoken_in(item)) for item in shown),
        look.faint("--- now ---"),
    ]
