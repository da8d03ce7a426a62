"""Messages from before the user's arrival: all that are new to them, and a screenful of older ones."""

from typing import Final

from csp.client.background_tasks import in_thread
from csp.http_client import GatewayClient, field, newest
from csp.human.event_lines import history_lines, is_part_of_message, spoken_in
from csp.human.message_text import hanging, height
from csp.human.safe_text import count
from csp.human.theme import Theme

MAX_AWAY: Final = 30
MAX_EARLIER: Final = 8
#: The rows below the conversation on the first screen: the room, two hints, the input line and the state.
_BELOW: Final = 5
_HINTS: Final = (
    "@name speaks to one agent, @all to all; /help lists the rest",
    'try: /mode debate "tabs or spaces"',
)


def room_line(look: Theme, name: str, who: str) -> str:
    """Return the first line of the pane: the room, and who is in it."""
    return hanging(f"room {name}: {who}", look.columns())


def hint_line(look: Theme) -> str:
    """Return what a person who has never been here should know."""
    return "\n".join(hanging(line, look.columns()) for line in _HINTS)


async def missed_lines(gateway: GatewayClient, look: Theme, seq: int, seen: int | None) -> list[str]:
    """Return the messages after `seen` up to `seq`, below as many earlier ones as fit on the screen."""
    is_back = seen is not None and seen <= seq
    items = await in_thread(lambda: newest(gateway, 2 * MAX_AWAY, before=seq + 1))
    # Notices about past turns are not worth a line.
    items = [item for item in items if not is_part_of_message(item) and not spoken_in(item).is_of_turns]
    known = [item for item in items if is_back and field(item, "seq", int) <= (seen or 0)]
    missed = items[len(known) :] if is_back else items[-MAX_EARLIER:]
    shown = missed[-MAX_AWAY:]
    drawn = history_lines(look, [*known, *shown])
    earlier, lines = drawn[: len(known)], drawn[len(known) :]
    earlier = _that_fit(earlier, look, lines)
    if not earlier and not lines:
        return []
    heading = "since you were away" if is_back else "the last words here"
    more = ", the newest of more; /history shows older ones" if len(missed) > len(shown) else ""
    divider = [look.faint(f"--- {heading} ({count(len(shown), 'message')}{more}) ---")] if lines else []
    return [*earlier, *divider, *lines, look.faint("--- now ---")]


def _that_fit(earlier: list[str], look: Theme, below: list[str]) -> list[str]:
    """Return the newest of the earlier messages that fit on the screen above the others."""
    width, rows = look.columns(), look.rows()
    space = rows - _BELOW - sum(_rows(line, width) for line in below)
    kept: list[str] = []
    for line in reversed(earlier):
        space -= _rows(line, width)
        if space < 0:
            break
        kept.insert(0, line)
    return kept


def _rows(text: str, width: int) -> int:
    return sum(height(row, width) for row in text.split("\n"))
