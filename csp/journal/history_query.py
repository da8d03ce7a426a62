"""What a question to the history is, with the rules by which a line answers it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec

from csp.errors import BadInput
from csp.protocol.enums import AgentId
from csp.protocol.events import HISTORY_TYPES, AnyEvent, MessageEvent, decode_event, type_of

Concerns = Callable[[AnyEvent, AgentId], bool]

#: The machinery of the room: in the journal, never in its history.
HIDDEN_TYPES: Final = frozenset(
    {"base", "board", "call", "control", "delivery", "joined", "left", "pruned", "redacted", "state"}
)
_WORD: Final = re.compile(r"[a-z0-9_]+\Z", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryQuery:
    """Which items of the history are wanted; `audience` limits them to what concerns that agent."""

    limit: int = 50
    after: int | None = None
    before: int | None = None
    agent: AgentId | None = None
    session: str | None = None
    types: frozenset[str] = HISTORY_TYPES
    q: str = ""
    audience: AgentId | None = None


class Facets(msgspec.Struct, frozen=True, gc=False):
    """The fields of a line that filters look at."""

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
    """Read the facets of a line; None where they are not of the shape all events share."""
    try:
        return _facets.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def facets_of_event(event: AnyEvent) -> Facets:
    """Return the facets of an event at hand, without reading its line again."""
    recipients = event.recipients if isinstance(event, MessageEvent) else ()
    session_id = getattr(event, "session_id", None)
    return Facets(event.seq, type_of(event), event.id, event.sender, event.target, "", session_id, recipients)


def text_of(line: bytes) -> str:
    """Return the text of a line, empty where it has none."""
    try:
        return _text.decode(line).text
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""


@lru_cache(maxsize=256)
def pieces(q: str) -> tuple[str, ...]:
    """Split what a person typed into the pieces that must all be found, folded for comparing."""
    return tuple(q.casefold().split())


def is_word(piece: str) -> bool:
    """Tell whether a piece is matched at the start of a word; others are matched anywhere."""
    return _WORD.match(piece) is not None


def matches(text: str, q: str) -> bool:
    """Tell whether `text` holds every piece of `q`, whatever the case.

    A piece of ASCII letters, digits and underscores must begin a word; any other may stand anywhere.
    """
    folded = text.casefold()
    return all(_piece_test(piece)(folded) for piece in pieces(q))


@lru_cache(maxsize=256)
def _piece_test(piece: str) -> Callable[[str], object]:
    if is_word(piece):
        return re.compile(r"(?<![a-z0-9_])" + piece, re.ASCII).search
    return lambda folded: piece in folded


def admits(query: HistoryQuery, line: bytes, facets: Facets, concerns: Concerns) -> bool:
    """Tell whether a line is an answer, the place given by `after` and `before` included."""
    return (
        _fits(query, facets)
        and (query.audience is None or _concerns(line, query.audience, concerns))
        and (not query.q or matches(text_of(line), query.q))
    )


def _fits(query: HistoryQuery, facets: Facets) -> bool:
    return (
        facets.type in query.types
        and facets.type not in HIDDEN_TYPES
        and (query.before is None or facets.seq < query.before)
        and (query.after is None or facets.seq > query.after)
        and (query.session is None or facets.session_id == query.session)
        and (query.agent is None or query.agent in (facets.sender, facets.target, *facets.recipients))
    )


def _concerns(line: bytes, audience: AgentId, concerns: Concerns) -> bool:
    try:
        return concerns(decode_event(line), audience)
    except BadInput:
        return False
