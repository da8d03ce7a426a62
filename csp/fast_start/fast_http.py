"""Make single HTTP requests, each over its own connection."""

import _socket

from csp.fast_start.process_environment import process_environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    Receive = Callable[[int], bytes]
    #: Called with each part of a streamed body as it arrives.
    OnPart = Callable[[bytes], None]

_READ_BYTES = 1 << 16
_MAX_HEAD_BYTES = 1 << 16
_BLANK_LINE = b"\r\n\r\n"
_WITHOUT_BODY = (204, 304)
_PORTS = {"http": 80, "https": 443}


#: With `is_alive`, how long a response may be silent before the gateway is checked, and between checks.
SILENCE_S = 1.0


#: The variable with the certificates to trust in addition to those of the system.
CA_FILE = "CSP_CA_FILE"
#: The same for the gateways of joined rooms, by host and port.
_trusted: dict[str, str] = {}


def trust(urls: str, ca_file: str) -> None:
    """Trust the certificates in a file for these gateways, in addition to those of the system."""
    for url in split_urls(urls):
        _trusted[Url(url).authority] = ca_file


def ca_file_of(urls: str) -> str:
    """Return the file with more certificates to trust for these gateways, or an empty string."""
    known = [_trusted[part] for url in split_urls(urls) if (part := Url(url).authority) in _trusted]
    return known[0] if known else process_environment().get(CA_FILE, "")


def tls_context(url: str) -> "ssl.SSLContext":
    """Return the context for a connection to a gateway; raise OSError if its certificates cannot be read."""
    import ssl

    context = ssl.create_default_context()
    if ca_file := ca_file_of(url):
        context.load_verify_locations(ca_file)
    return context


def split_urls(text: str) -> list[str]:
    """Return the gateways of one room, which are separated by commas, without doubles."""
    urls = [one.strip().rstrip("/") for one in text.split(",")]
    return list(dict.fromkeys(one for one in urls if one))


class Url:
    """The parts of a gateway's address; raises ValueError if the port is not a number."""

    def __init__(self, url: str) -> None:
        self.scheme, _, rest = url.partition("://")
        self.authority, _, path = rest.partition("/")
        name, sign, port = self.authority.rpartition(":")
        if not sign or port.endswith("]"):
            name, port = self.authority, ""
        self.host = name.removeprefix("[").removesuffix("]")
        self.port = int(port) if port else _PORTS[self.scheme]
        self.prefix = f"/{path}".rstrip("/")


def exchange(
    url: Url,
    method: str,
    path: str,
    headers: "Mapping[str, str]",
    body: bytes | None,
    timeout_s: float,
    on_sent: "Callable[[], None]",
    connect_s: float = 0.0,
    is_alive: "Callable[[], bool] | None" = None,
    on_part: "OnPart | None" = None,
) -> tuple[int, bytes]:
    """Send a request; return the status and body of the response.

    Raise ConnectionError if the response is invalid or incomplete. `connect_s` limits the time to connect.
    `is_alive` is asked whenever the response has been silent for a second; False raises TimeoutError.
    A body of unknown length is passed to `on_part` as it arrives, and is not returned.
    """
    lines = [f"{method} {url.prefix}{path} HTTP/1.1", f"Host: {url.authority}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    request = "\r\n".join([*lines, "", ""]).encode("ascii") + (body or b"")
    connection = _connect(url, connect_s or timeout_s)
    try:
        if connect_s:
            connection.settimeout(timeout_s)
        connection.sendall(request)
        on_sent()
        receive = _watched(connection, timeout_s, is_alive) if is_alive else connection.recv
        return _read_answer(receive, on_part)
    finally:
        connection.close()


def _watched(connection: _socket.socket, timeout_s: float, is_alive: "Callable[[], bool]") -> "Receive":
    """Return a function that receives bytes, and gives up early on a gateway that is no longer alive."""

    def receive(size: int) -> bytes:
        left_s = timeout_s
        while True:
            connection.settimeout(min(SILENCE_S, left_s))
            try:
                return connection.recv(size)
            except TimeoutError:
                left_s -= SILENCE_S
                if left_s <= 0 or not is_alive():
                    raise

    return receive


def _connect(url: Url, timeout_s: float) -> _socket.socket:
    # A str would be encoded with the idna codec, which is slow to load.
    host = url.host.encode("ascii") if url.host.isascii() else url.host
    failure = OSError("it has no address")
    for family, kind, protocol, _, address in _socket.getaddrinfo(host, url.port, 0, _socket.SOCK_STREAM):
        connection = _socket.socket(family, kind, protocol)
        try:
            connection.settimeout(timeout_s)
            connection.connect(address)
            return _secured(connection, url, timeout_s) if url.scheme == "https" else connection
        except OSError as exc:
            failure = exc
            connection.close()
    raise failure


def _secured(connection: _socket.socket, url: Url, timeout_s: float) -> _socket.socket:
    import socket

    plain = socket.socket(fileno=connection.detach())
    plain.settimeout(timeout_s)
    try:
        context = tls_context(f"https://{url.authority}")
        return context.wrap_socket(plain, server_hostname=url.host)
    except OSError:
        plain.close()
        raise


def _read_answer(receive: "Receive", on_part: "OnPart | None" = None) -> tuple[int, bytes]:
    status, fields, body = _read_head(receive, bytearray())
    while 100 <= status < 200:
        status, fields, body = _read_head(receive, body)
    if status in _WITHOUT_BODY:
        return status, b""
    if fields.get(b"transfer-encoding", b"").lower() == b"chunked":
        content = bytearray()
        while True:
            while (end := body.find(b"\r\n")) < 0:
                body += _more(receive)
            size = _number(bytes(body[:end]).partition(b";")[0].strip(), 16)
            if size == 0:
                return status, bytes(content)
            start = end + 2
            _read_up_to(receive, body, start + size + 2)
            if on_part is None:
                content += body[start : start + size]
            else:
                on_part(bytes(body[start : start + size]))
            del body[: start + size + 2]
    length = fields.get(b"content-length")
    if length is not None:
        size = _number(length, 10)
        _read_up_to(receive, body, size)
        return status, bytes(body[:size])
    while data := receive(_READ_BYTES):
        body += data
    return status, bytes(body)


def _read_head(receive: "Receive", data: bytearray) -> tuple[int, dict[bytes, bytes], bytearray]:
    """Return the status, the header fields by lower-case name, and the bytes that follow them."""
    while (end := data.find(_BLANK_LINE)) < 0:
        if len(data) > _MAX_HEAD_BYTES:
            raise ConnectionError("the response headers are incomplete")
        data += _more(receive)
    first, *lines = bytes(data[:end]).split(b"\r\n")
    version, _, rest = first.partition(b" ")
    if not version.startswith(b"HTTP/1."):
        raise ConnectionError("the response is not valid HTTP")
    fields = {}
    for line in lines:
        name, _, value = line.partition(b":")
        fields[name.lower()] = value.strip()
    return _number(rest[:3], 10), fields, data[end + len(_BLANK_LINE) :]


def _read_up_to(receive: "Receive", data: bytearray, size: int) -> None:
    while len(data) < size:
        data += _more(receive)


def _more(receive: "Receive") -> bytes:
    data = receive(_READ_BYTES)
    if not data:
        raise ConnectionError("the response is incomplete")
    return data


def _number(digits: bytes, base: int) -> int:
    # int() would accept signs, spaces and underscores.
    if not digits.isalnum():
        raise ConnectionError("the response is not valid HTTP")
    try:
        return int(digits, base)
    except ValueError as exc:
        raise ConnectionError("the response is not valid HTTP") from exc
