"""Parse requests and encode responses."""

import re
from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec

from csp.errors import BadInput, TooLarge
from csp.protocol.enums import MAX_TEXT_BYTES

T = TypeVar("T")
_OVER: Final = f"`str` of length <= {MAX_TEXT_BYTES}"
#: Maximum number of values in a request: every known body has fewer, and each parsed value blocks the whole
#: room for a microsecond or two.
MAX_VALUES: Final = 20_000
#: Matches this many commas outside strings and stops at the last of them, so a long list of values costs
#: little.
_TOO_MANY: Final = re.compile(rb'(?:(?:[^",]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+,){%d}' % MAX_VALUES, re.DOTALL)
_decoders: dict[object, msgspec.json.Decoder[object]] = {}


def parse(kind: type[T], data: bytes) -> T:
    """Parse bytes from a peer as `kind`; raise BadInput with the problem and its location."""
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    try:
        value: T = decoder.decode(data)  # type: ignore[assignment]  # the cache forgets the parameter
    except msgspec.ValidationError as exc:
        # msgspec reports a length only in its message.
        _, is_long, place = str(exc).partition(_OVER)
        if is_long:
            raise _too_large(place.rpartition("$.")[2].rstrip("`") or "text") from exc
        raise BadInput(_lower(str(exc)), "see /openapi.json for the shape of this request") from exc
    except RecursionError as exc:
        raise BadInput("JSON is nested too deeply", "send a flat object") from exc
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise BadInput(
            f"body is not valid JSON: {_lower(str(exc))}", 'send a JSON object such as {"to": "all"}'
        ) from exc
    return value


def parse_request(kind: type[T], data: bytes) -> T:
    """Parse a request like `parse`, but reject one with too many values without decoding it."""
    if data.count(b",") >= MAX_VALUES and _TOO_MANY.match(data):
        raise BadInput(f"JSON has more than {MAX_VALUES} values", "send several smaller requests")
    return parse(kind, data)


def _too_large(what: str) -> TooLarge:
    return TooLarge(f"{what} is over {MAX_TEXT_BYTES} bytes", "put it into a file and send its path")


def parse_query(kind: type[T], query: Mapping[str, str]) -> T:
    """Parse a query string as `kind`, converting text to numbers where needed."""
    try:
        return msgspec.convert(dict(query), kind, strict=False)
    except msgspec.ValidationError as exc:
        raise BadInput(_lower(str(exc)), "see /openapi.json for the parameters") from exc


def check_text(text: str) -> None:
    """Raise if a text is too long; the limit counts bytes, while a schema can only count characters."""
    if len(text) > MAX_TEXT_BYTES // 4 and len(text.encode()) > MAX_TEXT_BYTES:
        raise _too_large("text")


def _lower(message: str) -> str:
    return message if message[:2].isupper() else message[:1].lower() + message[1:]


encode = msgspec.json.Encoder().encode
