"""A blocking HTTP client for a gateway.

Short commands use this client, so its imports are minimal. JSON is not decoded into types here; functions
such as `field` check the few values that a command uses.
"""

from csp import errors
from csp.errors import BadInput, Broken, CspError, NotFound, Unreachable, UntrustedCertificate
from csp.fast_start.fast_http import Url, exchange, split_urls
from csp.fast_start.fast_json import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeVar

    T = TypeVar("T")
    Object = dict[str, Any]
    #: Method, path, body and timeout.
    Request = tuple[str, str, bytes | None, float]
else:
    Object = dict

Query = str | int | float | None
TIMEOUT_S = 30.0
#: How long a call is repeated if its response was lost; a supervised gateway restarts sooner.
REPEAT_S = 10.0
REPEAT_EVERY_S = 0.1
#: How long one of several gateways may take to connect or to prove that it is alive.
PROOF_S = 1.5
PAGE = 500
LONG_POLL_S = 20.0

#: The exceptions for error statuses; any other status raises Broken.
BY_STATUS: dict[int, type[CspError]] = {
    error.status: error
    for error in (
        *(BadInput, errors.Unauthenticated, errors.Forbidden, errors.NotFound, errors.Refused),
        *(errors.TooLarge, errors.Unsupported, errors.TooMany, Unreachable, errors.StorageFull),
    )
}


class GatewayClient:
    """A client of one room; each call uses a new connection, so connections are never stale.

    `url` is the room's gateway, or several of them separated by commas. If one is lost or frozen, calls go to
    the next one; a call that may have been executed is repeated only if it has an id.
    """

    def __init__(self, url: str, token: str) -> None:
        self._urls = split_urls(url) or [url]
        self._parts = [Url(one) for one in self._urls]
        self._at = 0
        if not token.isascii() or not token.isprintable():
            raise BadInput("CSP_AUTH_TOKEN: expected a token of ASCII characters")
        self._headers = {"X-Auth-Token": token, "Accept": "application/json"}

    @property
    def url(self) -> str:
        """The gateway that answered last, or the first one."""
        return self._urls[self._at]

    def get(self, path: str, **query: Query) -> "Any":
        """Return the response to a GET; a `wait` in the query extends the timeout."""
        from urllib.parse import urlencode

        given = {key: value for key, value in query.items() if value is not None}
        wait_s = float(given.get("wait") or 0)
        return self._ask("GET", f"{path}?{urlencode(given)}" if given else path, None, TIMEOUT_S + wait_s)

    def post(self, path: str, body: "Object | None" = None) -> "Any":
        """Return the response to a POST."""
        return self._ask("POST", path, dumps(body or {}).encode("ascii"), TIMEOUT_S)

    def post_once(self, path: str, body: "Object | None" = None) -> "Any":
        """Return the response to a POST that must not be executed twice.

        A gateway that dies may have executed the call before it could respond. So the call has an id and is
        repeated with it until a gateway responds; a repeated call gets the same response as the first one.
        """
        import os
        import time

        data = dumps({"id": os.urandom(8).hex(), **(body or {})}).encode("ascii")
        sent: list[bool] = []
        give_up_at = time.monotonic() + REPEAT_S
        while True:
            try:
                status, raw = self.exchange("POST", path, data, TIMEOUT_S, lambda: sent.append(True))
            except Unreachable:
                if not sent or time.monotonic() >= give_up_at:
                    raise
            else:
                # Of several gateways, one may have lost the others.
                is_final = status != Unreachable.status or len(self._urls) == 1
                if is_final or time.monotonic() >= give_up_at:
                    return _read(status, raw, self.url)
                self._move_on(self._at)
            time.sleep(REPEAT_EVERY_S)

    def delete(self, path: str) -> "Any":
        """Return the response to a DELETE."""
        return self._ask("DELETE", path, None, TIMEOUT_S)

    def _ask(self, method: str, path: str, body: bytes | None, timeout_s: float) -> "Any":
        status, raw = self.exchange(method, path, body, timeout_s)
        return _read(status, raw, self.url)

    def exchange(
        self,
        method: str,
        path: str,
        body: bytes | None,
        timeout_s: float,
        on_sent: "Callable[[], None]" = lambda: None,
    ) -> tuple[int, bytes]:
        """Send a request; return the response's status and body, or raise Unreachable if there is none."""
        if len(self._urls) == 1:
            return self._exchange_at(0, (method, path, body, timeout_s), on_sent)
        return self._exchange_with_any((method, path, body, timeout_s), on_sent)

    def _exchange_with_any(self, request: "Request", on_sent: "Callable[[], None]") -> tuple[int, bytes]:
        """Send a request to the current gateway, or else to the next one that is alive.

        A request that only reads may go to several gateways. Any other must not be executed twice: it is sent
        only to a gateway that has just proved to be alive, and if that one is lost, the caller has to decide.
        """
        is_read, timeout_s, sent = request[0] == "GET", request[3], list[int]()
        answer, lost = None, Unreachable("no gateway")
        # If none is fast enough to prove that it is alive, each gets the time that a single one has.
        for proof_s in (PROOF_S, timeout_s):
            is_slow = False
            for _ in self._urls:
                at = self._at

                def note_sent(at: int = at) -> None:
                    sent.append(at)
                    on_sent()

                try:
                    if not is_read:
                        self._prove(at, proof_s)
                    answer = self._exchange_at(at, request, note_sent, proof_s)
                except Unreachable as exc:
                    self._move_on(at)
                    if sent and not is_read:
                        raise
                    is_slow = is_slow or isinstance(exc.__cause__, TimeoutError)
                    lost = exc
                    continue
                if not is_read or answer[0] != Unreachable.status:
                    return answer
                # This one has lost the others.
                self._move_on(at)
            if answer is not None:
                return answer
            if not is_slow:
                break
        raise lost

    def _prove(self, at: int, proof_s: float) -> None:
        """Raise Unreachable unless a gateway is alive."""
        self._exchange_at(at, ("GET", "/health", None, proof_s), lambda: None)

    def _is_alive(self, at: int, proof_s: float) -> bool:
        try:
            self._prove(at, proof_s)
        except Unreachable:
            return False
        return True

    def _move_on(self, at: int) -> None:
        """Use the next gateway, unless another call has already left this one."""
        if at == self._at:
            self._at = (at + 1) % len(self._urls)

    def _exchange_at(
        self, at: int, request: "Request", on_sent: "Callable[[], None]", proof_s: float = 0.0
    ) -> tuple[int, bytes]:
        """Send a request to one gateway; with `proof_s`, it has to stay alive while it works."""
        url, parts, timeout_s = self._urls[at], self._parts[at], request[3]
        is_alive = (lambda: self._is_alive(at, proof_s)) if proof_s else None
        try:
            return exchange(parts, *request[:2], self._headers, *request[2:], on_sent, proof_s, is_alive)
        except ConnectionRefusedError as exc:
            raise Unreachable(f"no gateway answers at {url}", "start one with: csp up") from exc
        except TimeoutError as exc:
            raise Unreachable(f"the gateway at {url} did not respond within {timeout_s:g} s") from exc
        except ConnectionError as exc:
            what = f"the gateway at {url} closed the connection mid-response"
            raise Unreachable(what, "is it a csp gateway?") from exc
        except (OSError, UnicodeError) as exc:
            if "CERTIFICATE_VERIFY_FAILED" in str(exc):
                hint = "set CSP_CA_FILE to the gateway's certificate, or to that of its authority"
                raise UntrustedCertificate(f"the certificate of {url} is not trusted", hint) from exc
            reason = str(getattr(exc, "strerror", "") or exc).lower()
            raise Unreachable(f"cannot reach {url}: {reason}") from exc


def _read(status: int, raw: bytes, url: str) -> "Any":
    try:
        value = loads(raw) if raw else None
    except (ValueError, RecursionError) as exc:
        raise Broken(f"{url} returned non-JSON ({status})", "is it a csp gateway?") from exc
    if status < 400:
        return value
    said = value if isinstance(value, dict) else {}
    message = str(said.get("error") or f"the gateway at {url} answered {status}")
    raise BY_STATUS.get(status, Broken)(message, str(said.get("hint") or ""))


def segment(text: str) -> str:
    """Return the text, quoted as one path segment."""
    from urllib.parse import quote

    return quote(text, safe="")


def note_path(note: str) -> str:
    """Return the path of a note; raise NotFound for any other word, which could name another route."""
    number = note.removeprefix("n-")
    if number == note or not (number.isascii() and number.isdigit()):
        raise NotFound(f"unknown note {note!r}", "see: csp board show")
    return f"/board/{note}"


def field(value: object, key: str, kind: "type[T]") -> "T":
    """Return a field of a response, or raise Broken if it is missing or of another type."""
    found = value.get(key) if isinstance(value, dict) else None
    if kind is float and isinstance(found, int):
        found = float(found)
    if not isinstance(found, kind):
        raise Broken(
            f"the gateway's answer has no {key!r} of type {kind.__name__}",
            "gateway and CLI versions may differ",
        )
    return found


def objects(value: object) -> "list[Object]":
    """Return the response if it is a list of objects, or raise Broken."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Broken("the gateway's answer is not a list of objects", "gateway and CLI versions may differ")
    return value


# --- history -------------------------------------------------------------------------------------


def page(gateway: GatewayClient, **query: Query) -> "list[Object]":
    """Return one page of history, oldest first."""
    return objects(field(gateway.get("/history", **query), "items", list))


def newest(gateway: GatewayClient, limit: int, **query: Query) -> "list[Object]":
    """Return the newest `limit` items, oldest first, reading several pages if needed."""
    found: list[Object] = []
    while len(found) < limit:
        items = page(gateway, limit=min(PAGE, limit - len(found)), **query)
        if not items:
            break
        found = items + found
        query["before"] = field(items[0], "seq", int)
    return found


def oldest(gateway: GatewayClient, after: int = 0, **query: Query) -> "Iterator[Object]":
    """Yield the whole history after a seq, oldest first."""
    while items := page(gateway, after=after, limit=PAGE, **query):
        yield from items
        after = field(items[-1], "seq", int)


def follow(
    connect: "Callable[[], GatewayClient]",
    after: int,
    tell: "Callable[[Unreachable | None], None]",
    **query: Query,
) -> "Iterator[Object]":
    """Yield new items after a seq indefinitely.

    If the gateway is unreachable, `tell` is called with the error; the next attempt is made when it
    returns. After each response, `tell` is called with None.
    """
    gateway: GatewayClient | None = None
    is_away = False
    while True:
        try:
            gateway = gateway or connect()
            # The first response after a failure shows that the gateway is back, so it must not be delayed.
            wait_s = None if is_away else LONG_POLL_S
            items = page(gateway, after=after, wait=wait_s, limit=PAGE, **query)
        except Unreachable as exc:
            gateway, is_away = None, True
            tell(exc)
            continue
        is_away = False
        tell(None)
        yield from items
        after = field(items[-1], "seq", int) if items else after
