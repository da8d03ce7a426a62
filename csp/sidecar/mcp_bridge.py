"""Connect a CLI in a pane, which speaks MCP over standard input and output, to /mcp of its room's gateway.

The gateway loads the MCP SDK once for all agents; a server of its own would cost each agent 48 MB and 0.7 s
of CPU time. A CLI could also use /mcp directly, but then a gateway that restarts would cost it a call. Here a
request is repeated, with the same id, until a gateway has answered it, so it is carried out once. The record
contains the room's current address and the agent's current token, which may change while the CLI runs.
"""

import _thread
import os
import time

from csp.errors import Unreachable
from csp.fast_start.fast_http import Url, exchange, split_urls
from csp.fast_start.fast_json import dumps, loads
from csp.fast_start.process_environment import process_environment
from csp.sidecar.record_file import read_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

    Message = dict[str, Any]
    Write = Callable[[str], None]

#: How long a request is repeated if no gateway can be reached; a supervised gateway restarts sooner.
PATIENCE_S: "Final" = 20.0
_PAUSE_S: "Final" = 0.2
_CONNECT_S: "Final" = 5.0
#: How long one of several gateways may take to prove that it is alive.
PROOF_S: "Final" = 1.5
#: A call may wait for a whole collaboration.
_ANSWER_S: "Final" = 1900.0
#: How often a request is repeated that was lost after it had been sent, because it may itself be the cause.
_MOST_LOST: "Final" = 5
_READ_BYTES: "Final" = 1 << 16
_VERSION: "Final" = "io.modelcontextprotocol/protocolVersion"
#: The parameter of a method that a header has to repeat.
_NAMES: "Final" = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_CANCELLED: "Final" = "notifications/cancelled"
_UNREACHABLE: "Final" = -32000
_INVALID: "Final" = -32600
_PARSE_ERROR: "Final" = -32700


class PendingRequest:
    """A request of the client that waits for its response."""

    def __init__(self, message: "Message", line: bytes, headers: dict[str, str]) -> None:
        self.message, self.line, self.headers = message, line, headers
        #: Whether the client still waits for the response.
        self.is_wanted = True


class McpBridge:
    """Passes on the messages of one client; `write` sends a line to it."""

    def __init__(self, folder: str, write: "Write") -> None:
        self._folder = folder
        self._write = write
        #: Makes the ids of this client's calls unique.
        self._instance = os.urandom(16).hex()
        self._version = ""
        #: The open requests, by their ids in JSON.
        self._open: dict[str, PendingRequest] = {}

    # --- messages of the client ------------------------------------------------------------------

    def accept(self, line: bytes) -> None:
        """Handle one line of the client; a thread waits for the response to a request."""
        if not line.strip():
            return
        try:
            message = loads(line)
        except ValueError as exc:
            self._write(_error(None, _PARSE_ERROR, str(exc)))
            return
        method = _object(message).get("method")
        if not isinstance(method, str):
            is_response = "result" in _object(message) or "error" in _object(message)
            found = _object(message).get("id")
            id = found if type(found) in (int, str) and not is_response else None
            self._write(_error(id, _INVALID, "this is not a JSON-RPC message"))
        elif "id" in message:
            request = self._open[dumps(message["id"])] = PendingRequest(message, line, self._headers(message))
            _thread.start_new_thread(self._answer, (request,))
        elif method == _CANCELLED:
            cancelled = self._open.get(dumps(_object(message.get("params")).get("requestId")))
            if cancelled is not None:
                cancelled.is_wanted = False

    def _answer(self, request: PendingRequest) -> None:
        try:
            answer = self._ask(request)
        except Unreachable as lost:
            answer = _failed(request.message, lost.message)
        if answer and request.is_wanted:
            self._write(answer)
        key = dumps(request.message["id"])
        if self._open.get(key) is request:
            del self._open[key]

    # --- requests to the gateway -----------------------------------------------------------------

    def _ask(self, request: PendingRequest) -> str:
        """Return the gateway's response as one line; an event stream is passed on as it arrives."""
        times_lost, give_up_at, at = 0, 0.0, 0
        while True:
            urls, token = self._address()
            url = urls[at % len(urls)]
            sent: list[bool] = []
            events = _Events(lambda text: self._write(text) if request.is_wanted else None)
            try:
                status, body = exchange(
                    Url(url),
                    "POST",
                    "/mcp",
                    {"X-Auth-Token": token, **request.headers},
                    request.line,
                    _ANSWER_S,
                    on_sent=_note(sent),
                    connect_s=_CONNECT_S,
                    is_alive=_watch(request, url, len(urls)),
                    on_part=events.feed,
                )
                return "" if events.is_used else self._read(request.message, status, body)
            except (OSError, ValueError) as exc:
                if not request.is_wanted:
                    return ""
                times_lost += len(sent)
                give_up_at = time.monotonic() + PATIENCE_S if sent or not give_up_at else give_up_at
                if times_lost > _MOST_LOST or time.monotonic() >= give_up_at:
                    reason = getattr(exc, "strerror", "") or str(exc)
                    raise Unreachable(f"no gateway answers at {', '.join(urls)} ({reason.lower()})") from exc
            at += 1
            time.sleep(_PAUSE_S)

    def _address(self) -> tuple[list[str], str]:
        """Return the addresses of the room's gateways and the agent's token, as they are now."""
        record = read_record(self._folder) or {}
        env = process_environment()
        urls = split_urls(str(record.get("url") or env.get("CSP_GATEWAY_URL", "")))
        return urls or [""], str(record.get("token") or env.get("CSP_AUTH_TOKEN", ""))

    def _headers(self, message: "Message") -> dict[str, str]:
        headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "X-Csp-Caller": self._instance,
        }
        params = _object(message.get("params"))
        version = _object(params.get("_meta")).get(_VERSION)
        if isinstance(version, str) and version.isascii() and version.isprintable():
            headers |= {"Mcp-Protocol-Version": version, "Mcp-Method": _header(str(message["method"]))}
            name = params.get(_NAMES.get(message["method"], ""))
            if isinstance(name, str):
                headers["Mcp-Name"] = _header(name)
        elif self._version and message["method"] != "initialize":
            headers["Mcp-Protocol-Version"] = self._version
        return headers

    def _read(self, message: "Message", status: int, body: bytes) -> str:
        try:
            answer = loads(body)
        except ValueError:
            return _failed(message, f"the gateway answered {status} without JSON")
        if isinstance(answer, dict) and "jsonrpc" in answer:
            version = _object(answer.get("result")).get("protocolVersion")
            if message["method"] == "initialize" and isinstance(version, str):
                self._version = version
            if answer.get("id") is None:
                # The SDK refuses a request by its headers before it reads its id.
                answer["id"] = message["id"]
            return dumps(answer, is_ascii=False)
        said = _object(answer)
        hint = f" ({said['hint']})" if said.get("hint") else ""
        return _failed(message, f"{said.get('error') or f'the gateway answered {status}'}{hint}")


class _Events:
    """Reads server-sent events, whose data are JSON-RPC messages in one line each."""

    def __init__(self, write: "Write") -> None:
        self._write = write
        self._rest = b""
        self.is_used = False

    def feed(self, data: bytes) -> None:
        self.is_used = True
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            field, _, value = line.partition(b":")
            if field == b"data" and value.strip():
                self._write(value.strip().decode("utf-8", "replace"))


def _note(sent: list[bool]) -> "Callable[[], None]":
    return lambda: sent.append(True)


def _watch(request: PendingRequest, url: str, gateways: int) -> "Callable[[], bool]":
    """Return a function that returns whether to wait on for the response of a gateway."""

    def is_alive() -> bool:
        # The only gateway has no alternative and is waited for.
        if not request.is_wanted or gateways == 1:
            return request.is_wanted
        try:
            return exchange(Url(url), "GET", "/health", {}, None, PROOF_S, lambda: None)[0] < 500
        except OSError:
            return False

    return is_alive


def _object(value: object) -> "Message":
    return value if isinstance(value, dict) else {}


def _header(text: str) -> str:
    """Encode a header value as the specification of MCP says."""
    if text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?base64?"):
        return text
    from binascii import b2a_base64

    encoded = b2a_base64(text.encode("utf-8", "replace"), newline=False).decode("ascii")
    return f"=?base64?{encoded}?="


def _failed(message: "Message", problem: str) -> str:
    """Return the response to a request that failed; a model reads the result of a tool, not an error."""
    if message["method"] != "tools/call":
        return _error(message["id"], _UNREACHABLE, problem)
    result = {"content": [{"type": "text", "text": problem}], "isError": True}
    return dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}, is_ascii=False)


def _error(id: object, code: int, problem: str) -> str:
    return dumps({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": problem}}, is_ascii=False)


def serve(folder: str) -> None:
    """Serve the client until it closes standard input."""
    writing = _thread.allocate_lock()

    def write(text: str) -> None:
        data = text.encode("utf-8", "surrogatepass") + b"\n"
        with writing:
            while data:
                data = data[os.write(1, data) :]

    bridge = McpBridge(folder, write)
    rest = b""
    while data := os.read(0, _READ_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            bridge.accept(line)
    # Open requests end with this process, and the gateway cancels them.
    os._exit(0)
