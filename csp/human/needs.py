"""The items that need the user: update them from GET /attention, draw them, and answer them by key."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from csp.errors import BadInput, CspError, NotFound
from csp.human.message_text import hanging
from csp.human.safe_text import count, one_line, visible
from csp.human.theme import Theme
from csp.protocol.attention import (
    AttentionAnswer,
    AttentionItem,
    AttentionKind,
    AttentionLevel,
    AttentionView,
)
from csp.protocol.events import AnyEvent, type_of
from csp.room import human_input
from csp.room.attention import EVENTS

#: Changes arrive in bursts, so they share one request, and requests are limited.
_GATHER_S: Final = 0.1
_REST_S: Final = 0.3
#: An item that has only just appeared cannot be the one that the user wanted to answer.
TOO_NEW_S: Final = 0.5
#: How long an approval is held back that does not say what for: the CLI may still draw its dialog.
UNDRAWN_S: Final = 2.0
_DETAIL: Final = 600
_ROWS: Final = 6
_DIALOGS: Final = (AttentionKind.APPROVAL, AttentionKind.DIALOG, AttentionKind.LOGIN, AttentionKind.TRUST)

Ask = Callable[[str, str], Awaitable[Any]]


class Needs:
    """The last response of GET /attention; `tell` is called once for each item that waits for the user."""

    def __init__(self, ask: Ask, tell: Callable[[AttentionItem], None], changed: Callable[[], None]) -> None:
        self._ask = ask
        self._tell = tell
        self._changed = changed
        self._stale = asyncio.Event()
        self.items: tuple[AttentionItem, ...] = ()
        #: The waiting items with the times at which they appeared, and those that were reported.
        self._seen: dict[tuple[str, float], float] = {}
        self._told: dict[tuple[str, float], float] = {}

    @property
    def urgent(self) -> list[AttentionItem]:
        """The items that wait for the user, oldest first."""
        return [item for item in self.items if item.level is AttentionLevel.ACTION]

    def note(self, event: AnyEvent) -> None:
        """Schedule an update if an event may have changed the list."""
        if type_of(event) in EVENTS:
            self.wake()

    def wake(self) -> None:
        """Schedule an update."""
        self._stale.set()

    async def keep_fresh(self) -> None:
        """Update the list whenever something has changed, until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(UNDRAWN_S if len(self._told) < len(self._seen) else None):
                    await self._stale.wait()
            await asyncio.sleep(_GATHER_S)
            self._stale.clear()
            with contextlib.suppress(CspError):
                await self.look()
            await asyncio.sleep(_REST_S)

    async def look(self) -> None:
        """Request the list; a gateway of another version may not provide it."""
        answer = await self._ask("GET", "/attention")
        with contextlib.suppress(msgspec.ValidationError):
            self.items = msgspec.convert(answer, AttentionView).items
        now = time.monotonic()
        known = {(item.id, item.since): item for item in self.urgent}
        self._seen = {key: self._seen.get(key, now) for key in known}
        self._told = {key: at for key, at in self._told.items() if key in known}
        for key, item in known.items():
            is_clear = item.kind is not AttentionKind.APPROVAL or bool(item.detail.strip())
            if key not in self._told and (is_clear or now - self._seen[key] >= UNDRAWN_S):
                self._told[key] = now
                self._tell(item)
        self._changed()

    def find_answer(self, key: str) -> AttentionAnswer:
        """Return the answer for a key to the newest waiting item; raise if it is invalid or too early."""
        items = self.urgent or list(self.items)
        if not items:
            raise NotFound("nothing needs you", "see: /status")
        item = items[-1]
        now = time.monotonic()
        told = self._told.get((item.id, item.since), now if item.level is AttentionLevel.ACTION else 0.0)
        if now - told < TOO_NEW_S:
            raise BadInput(f"this item has only just appeared: {item.title}", "look at it, then answer again")
        answer = next((one for one in item.answers if one.key == key), None)
        if answer is None:
            keys = ", ".join(f"{one.key} {one.label}" for one in item.answers)
            raise BadInput(f"{key!r} is not an answer to: {item.title}", f"there are: {keys}")
        return answer

    def only_dialog(self) -> str:
        """Return the only agent that has a dialog open; raise if none or several have one."""
        return human_input.only_asker(sorted({item.agent for item in self.items if item.kind in _DIALOGS}))


def need_lines(look: Theme, item: AttentionItem) -> str:
    """Return an item as lines with its title, its details and the possible answers."""
    answers = "   ".join(f"{one.key} {visible(one_line(one.label, 60))}" for one in item.answers)
    hint = "(/y, /n or /answer KEY; Alt-Y, Alt-N)"
    rows = hanging(f"  {answers}   {hint}", look.columns(), further=2).split("\n")
    return "\n".join([*_item_rows(look, item), *map(look.faint, rows)])


def _item_rows(look: Theme, item: AttentionItem) -> list[str]:
    sign = look.signs.call
    lines = [f"{look.alert(sign) if item.level is AttentionLevel.ACTION else sign} {visible(item.title)}"]
    detail = item.detail.strip().split("\n")
    lines += [f"  {visible(one_line(row, _DETAIL))}" for row in detail[:_ROWS] if row.strip()]
    if len(detail) > _ROWS:
        lines.append(look.faint(f"  ... {count(len(detail) - _ROWS, 'more line')}"))
    return lines


def list_lines(look: Theme, items: tuple[AttentionItem, ...]) -> list[str]:
    """Return the whole list, with the commands that answer each item."""
    lines = []
    for item in items:
        lines += _item_rows(look, item)
        lines += [f"    {visible(one.line)}  {look.faint(visible(one.label))}" for one in item.answers]
    return lines or ["nothing needs you"]


def row_text(items: list[AttentionItem], sign: str, width: int) -> str:
    """Return the newest item in one row, with its keys; empty if nothing is waiting."""
    if not items:
        return ""
    item = items[-1]
    subject = one_line(item.detail, 400)
    what = f"{item.agent}: {subject}" if item.kind is AttentionKind.APPROVAL and subject else item.title
    keys = "".join(f"  Alt-{one.key.upper()} {one.label}" for one in item.answers if one.key in ("y", "n"))
    more = f"  +{len(items) - 1} /needs" if len(items) > 1 else ""
    tail = f"{keys or '  /needs'}{more}"
    room = max(width - len(tail) - len(sign) - 2, 10)
    return visible(f"{sign} {one_line(what, room)}{tail}")[:width]
