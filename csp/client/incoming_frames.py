"""Decode the frames and HTTP responses of a gateway."""

from typing import Final, TypeVar

import msgspec

from csp.errors import BadInput, Broken, CspError, Unreachable
from csp.http_client import BY_STATUS
from csp.protocol.codec import parse
from csp.protocol.enums import Struct
from csp.protocol.events import AnyEvent, decode_event
from csp.protocol.responses import Deliver, ErrorView
from csp.protocol.screen_frames import LiveView

T = TypeVar("T")
Ref = int | str


class Live(Struct, frozen=True):
    """A live frame, such as a screen; it is not part of the history.

    For an agent, `watch` tells whether anybody is watching its screen: after True, the agent sends the whole
    screen and then only changes, until False. `read` returns the other fields.
    """

    data: msgspec.Raw
    watch: bool | None = None

    def read(self) -> LiveView:
        """Return the decoded body, or raise BadInput if its format is unknown."""
        return parse(LiveView, bytes(self.data))


#: The frame that an agent gets when the connection to its watchers is lost.
NOT_WATCHED: Final = Live(data=msgspec.Raw(b'{"watch":false}'), watch=False)
Item = AnyEvent | Deliver | Live


class CallAnswer(Struct, frozen=True):
    """The result of an operation, with the fields of its HTTP response."""

    ref: Ref | None = None
    error: str | None = None
    hint: str = ""
    status: int = Broken.status
    id: str = ""
    seq: int = 0
    recipients: tuple[str, ...] = ()
    late: bool = False
    extended: bool = False
    posted: bool = True

    def to_error(self) -> CspError | None:
        """Return the exception to raise in the operation's caller."""
        if self.error is None:
            return None
        return BY_STATUS.get(self.status, Broken)(self.error, self.hint)


_NOTHING: Final = msgspec.Raw()


class _Frame(Struct, frozen=True):
    deliver: Deliver | None = None
    live: msgspec.Raw = _NOTHING
    ref: Ref | None = None
    error: str | None = None


_EVENT_HEAD: Final = b'{"v":'


class _Watch(Struct, frozen=True):
    watch: bool | None = None


def read_frame(data: bytes) -> Item | CallAnswer:
    """Return the content of a frame, or raise BadInput if its format is unknown."""
    if data.startswith(_EVENT_HEAD):
        return decode_event(data)
    frame = parse(_Frame, data)
    if frame.deliver is not None:
        return frame.deliver
    if frame.live is not _NOTHING:
        try:
            watch = parse(_Watch, bytes(frame.live)).watch
        except BadInput:
            watch = None
        return Live(data=frame.live, watch=watch)
    if frame.ref is not None or frame.error is not None:
        return parse(CallAnswer, data)
    return decode_event(data)


def read_answer(kind: type[T], status: int, raw: bytes, url: str) -> T:
    """Return the body of an HTTP response, or raise its error.

    A response that is not from a gateway, but for example from a proxy, raises Unreachable.
    """
    if status >= 400:
        raise read_error(status, raw, url)
    try:
        return parse(kind, raw)
    except BadInput as exc:
        raise _foreign(status, url) from exc


def read_error(status: int, raw: bytes, url: str) -> CspError:
    """Return the error in an HTTP response; Unreachable if the response is not from a gateway."""
    try:
        said = parse(ErrorView, raw)
    except BadInput:
        return _foreign(status, url)
    return BY_STATUS.get(status, Broken)(said.error, said.hint)


def _foreign(status: int, url: str) -> Unreachable:
    return Unreachable(f"{url} answered {status}, but is not a gateway", "is there a proxy in between?")
