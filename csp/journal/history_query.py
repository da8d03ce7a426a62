"""A history query, and the rules that decide which lines match it."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from csp.errors import BadInput
from csp.protocol.enums import AgentId
from csp.protocol.events import HISTORY_TYPES, AnyEvent, MessageEvent, decode_event, type_of

Concerns = Callable[[AnyEvent, AgentId], bool]

#: Internal events: in the journal, but not part of the history.
HIDDEN_TYPES: Final = frozenset(
    {"base", "board", "call", "control", "delivery", "joined", "left", "pruned", "redacted", "state"}
)
_WORD: Final = re.compile(r"[a-z0-9_]+\Z", re.ASCII)


class HistoryQuery(NamedTuple):
    """Conditions for the history items to return; `audience` limits them to those an agent may read."""

    limit: int = 50
    after: int | None = None
    before: int | None = None
    agent: AgentId | None = None
    session: str | None = None
    types: frozenset[str] = HISTORY_TYPES
    q: str = ""
    audience: AgentId | None = None


class Facets(msgspec.Struct, frozen=True, gc=False):
    """The fields of a line that filters examine."""

    seq: int
    type: str
    id: str = ""
    sender: str = ""
    target: str = ""
    message: str = ""
    session_id: str | None = None
    recipients: tuple[str, ...] = ()


class _Text(msgspec.Struct, frozen=True, gc=False):
    text: str = ""


_facets: Final = msgspec.json.Decoder(Facets)
_text: Final = msgspec.json.Decoder(_Text)


def facets_of(line: bytes) -> Facets | None:
    """Return the facets of a line; None if it lacks the fields that all events have."""
    try:
        return _facets.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def facets_of_event(event: AnyEvent) -> Facets:
    """Return the facets of a decoded event."""
    recipients = event.recipients if isinstance(event, MessageEvent) else ()
    session_id = getattr(event, "session_id", None)
    return Facets(event.seq, type_of(event), event.id, event.sender, event.target, "", session_id, recipients)


def text_of(line: bytes) -> str:
    """Return the text of a line, or "" if it has none."""
    try:
        return _text.decode(line).text
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""


def event_of(line: bytes) -> AnyEvent | None:
    """Decode a line; None if it is damaged."""
    try:
        return decode_event(line)
    except BadInput:
        return None


@lru_cache(maxsize=256)
def pieces(q: str) -> tuple[str, ...]:
    """Split search text into case-folded pieces, all of which must match."""
    return tuple(q.casefold().split())


def is_word(piece: str) -> bool:
    """Return whether a piece must match at the start of a word; other pieces match anywhere."""
    return _WORD.match(piece) is not None


def matches(text: str, q: str) -> bool:
    """Return whether `text` contains every piece of `q`, ignoring case.

    A piece of ASCII letters, digits and underscores must match at the start of a word, any other anywhere.
    """
    folded = text.casefold()
    return all(_piece_test(piece)(folded) for piece in pieces(q))


@lru_cache(maxsize=256)
def _piece_test(piece: str) -> Callable[[str], object]:
    if is_word(piece):
        return re.compile(r"(?<![a-z0-9_])" + piece, re.ASCII).search
    return lambda folded: piece in folded


def admits(query: HistoryQuery, line: bytes, facets: Facets, concerns: Concerns) -> bool:
    """Return whether a line matches a query, including its `after` and `before`."""
    fits = (
        facets.type in query.types
        and facets.type not in HIDDEN_TYPES
        and (query.before is None or facets.seq < query.before)
        and (query.after is None or facets.seq > query.after)
        and (query.session is None or facets.session_id == query.session)
        and (query.agent is None or query.agent in (facets.sender, facets.target, *facets.recipients))
    )
    if not fits:
        return False
    if query.audience is not None:
        event = event_of(line)
        if event is None or not concerns(event, query.audience):
            return False
    return not query.q or matches(text_of(line), query.q)
