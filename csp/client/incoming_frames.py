"""What comes from a gateway, told apart."""

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
    """Something that matters only now, such as a piece of a stream; it is in no history.

    To an agent, `watch` says whether anybody looks at its screen: with each True it shows all of it, then
    what changes, until False. `read` gives the rest.
    """

    data: msgspec.Raw
    watch: bool | None = None

    def read(self) -> LiveView:
        """Return what it holds, or raise BadInput where it is nothing known here."""
        return parse(LiveView, bytes(self.data))


#: What an agent is told when the way to those who watch it is lost.
NOT_WATCHED: Final = Live(data=msgspec.Raw(b'{"watch":false}'), watch=False)
Item = AnyEvent | Deliver | Live


class CallAnswer(Struct, frozen=True):
    """What became of an operation; each has the fields of its own HTTP answer."""

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
        """Return what the caller of the operation should see raised."""
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


def read_frame(data: bytes) -> Item | CallAnswer:
    """Return what a frame holds, or raise BadInput where it is none of ours."""
    if data.startswith(_EVENT_HEAD):
        return read_event(data)
    frame = parse(_Frame, data)
    if frame.deliver is not None:
        return frame.deliver
    if frame.live is not _NOTHING:
        return Live(data=frame.live, watch=_watch_in(frame.live))
    if frame.ref is not None or frame.error is not None:
        return parse(CallAnswer, data)
    return read_event(data)


class _Watch(Struct, frozen=True):
    watch: bool | None = None


def _watch_in(live: msgspec.Raw) -> bool | None:
    try:
        return parse(_Watch, bytes(live)).watch
    except BadInput:
        return None


def read_event(line: bytes) -> AnyEvent:
    """Return the event of a journal line, or raise BadInput."""
    try:
        return decode_event(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
        raise BadInput(f"event is not json: {exc}") from exc


def read_answer(kind: type[T], status: int, raw: bytes, url: str) -> T:
    """Return the body of an HTTP answer, or raise what it says.

    An answer that no gateway would give is a proxy's, so it counts as none: Unreachable.
    """
    if status >= 400:
        raise read_error(status, raw, url)
    try:
        return parse(kind, raw)
    except BadInput as exc:
        raise _foreign(status, url) from exc


def read_error(status: int, raw: bytes, url: str) -> CspError:
    """Return the error of an HTTP answer; Unreachable where it is not a gateway's own."""
    try:
        said = parse(ErrorView, raw)
    except BadInput:
        return _foreign(status, url)
    return BY_STATUS.get(status, Broken)(said.error, said.hint)


def _foreign(status: int, url: str) -> Unreachable:
    return Unreachable(f"{url} answered {status}, but not as a gateway does", "is there a proxy in between?")
