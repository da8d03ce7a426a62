"""Every exception that CSP raises on purpose.

CspError
├── BadInput             the peer sent malformed data: 400, continue
│   ├── TooLarge         over a size limit: 413
│   └── Unauthenticated  no token, or an unknown one: 401
├── Refused              a room rule forbids it: 409, with the reason
│   ├── Forbidden        this role may not do that: 403
│   ├── NotFound         no such participant, message or route: 404
│   └── TooMany          a queue is full or a connection limit is reached: 429
└── Broken               an internal failure: log, stop or wait
    ├── StorageFull      the journal cannot grow: 507 until it can
    ├── StorageFailed    the disk is unreliable: the gateway stops
    ├── JournalLocked    another gateway writes to this room
    ├── Deposed          another gateway has appended to the log of this room: 503
    ├── LogLost          the log of this room does not answer: 503
    ├── Unreachable      no gateway answers, or none is running
    └── CallFailed       the provider of a model does not answer
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar


class CspError(Exception):
    """An error with a message and a hint about what to do."""

    status: "ClassVar[int]" = 500

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class BadInput(CspError):
    status = 400


class TooLarge(BadInput):
    status = 413


class Unsupported(BadInput):
    status = 415


class Unauthenticated(BadInput):
    status = 401


class Refused(CspError):
    status = 409


class Forbidden(Refused):
    status = 403


class NotFound(Refused):
    status = 404


class TooMany(Refused):
    """A limit was reached; `after_s` is the time until a retry makes sense, if known."""

    status = 429

    def __init__(self, message: str, hint: str = "", *, after_s: "float | None" = None) -> None:
        super().__init__(message, hint)
        self.after_s = after_s


class Broken(CspError):
    status = 500


class StorageFull(Broken):
    status = 507


class StorageFailed(Broken):
    status = 500


class JournalLocked(Broken):
    status = 500


class Deposed(Broken):
    status = 503


class LogLost(Broken):
    """The log does not answer; `after_s` is the time until a retry makes sense, if known."""

    status = 503

    def __init__(self, message: str, hint: str = "", *, after_s: "float | None" = None) -> None:
        super().__init__(message, hint)
        self.after_s = after_s


class Unreachable(Broken):
    status = 503


class UntrustedCertificate(Unreachable):
    """This machine does not trust the certificate of a gateway."""


class CallFailed(Broken):
    """A provider failed; the error indicates whether to try again and, if known, when."""

    status = 502

    def __init__(
        self, message: str, hint: str = "", *, is_passing: bool = False, after_s: float | None = None
    ) -> None:
        super().__init__(message, hint)
        self.is_passing = is_passing
        self.after_s = after_s
