"""Send a message and, on request, wait for the replies."""

import sys
import time
from typing import Final

from csp.cli.arguments import JSON, SECONDS, switch, takes, value
from csp.cli.output import Progress, put, put_json, talk
from csp.cli.verb_call import VerbCall
from csp.errors import BadInput, NotFound, TooLarge, Unreachable
from csp.http_client import GatewayClient, Object, field, newest, page, segment
from csp.human.status_lines import DONE

MAX_TEXT_BYTES: Final = 256 * 1024
_POLL_S: Final = 1.0
_RETRY_S: Final = 0.3
_QUIET_S: Final = 1.0
_LOST: Final = ("failed", "withdrawn", "expired")
_TAKEN: Final = ("submitted", "confirmed")
_ENDINGS: Final = {
    "interrupted": "its turn was interrupted",
    "failed": "its turn failed",
    "limited": "it has reached a usage limit",
}
_SPEECH: Final = "human_message,agent_call,agent_response"


@takes(
    value("target", "TARGET", "an agent's id, or all"),
    value("text", "TEXT", "the message; '-' reads stdin; put -- before text that starts with -", nargs="*"),
    switch("--wait", "wait for the replies and print them"),
    value("--timeout", "S", "seconds to wait; default: 600", type=SECONDS, default=600.0),
    switch("--urgent", "interrupt a busy agent"),
    value("--from-last", "AGENT", "append the last message of this agent"),
    value("--thread", "T", "thread to send in"),
    value("--reply-to", "ID", "message to reply to"),
    value("--id", "ID", "id of the message; the same id is never sent twice"),
    JSON,
    examples=("csp send claude 'fix the parser' --wait",),
)
def send(call: VerbCall) -> int:
    """Send a message; print its id or, with --wait, the replies."""
    args = call.args
    text = read_stdin() if args.text == ["-"] else " ".join(args.text)
    if args.from_last:
        # The filter also finds messages to the agent, so search back for one from the agent itself.
        found = reversed(newest(call.gateway, 200, agent=args.from_last, types=_SPEECH))
        last = next((item for item in found if item.get("sender") == args.from_last), None)
        if last is None:
            raise NotFound(f"{args.from_last!r} has sent no message yet", "see: csp history")
        quoted = "\n".join(f"> {line}".rstrip() for line in field(last, "text", str).split("\n"))
        text = f"{text}\n\n{args.from_last} said:\n{quoted}".lstrip("\n")
    if not text.strip():
        raise BadInput("expected text to send, got nothing", "see: csp send --help")
    given = {
        "to": args.target,
        "content": text,
        "thread": args.thread,
        "replyTo": args.reply_to,
        "id": args.id,
        "urgent": args.urgent or None,
    }
    body = {key: value for key, value in given.items() if value is not None}
    answer = call.gateway.post_once("/message", body)
    recipients = [str(agent) for agent in field(answer, "recipients", list)]
    message = field(answer, "id", str)
    talk(f"sent {_number(answer) or message} to {', '.join(recipients) or 'nobody'}")
    return _Waiting(call, answer, recipients).run() if args.wait else call.show(answer, [message])


@takes(value("id", "ID", "a message's id, or its number in csp history"), JSON, examples=("csp {verb} 12",))
def act(call: VerbCall) -> int:
    """Resend, cancel or release a sent message."""
    verb, message = call.args.verb, call.args.id
    number = message.removeprefix("#")
    if number.isascii() and number.isdecimal():
        items = page(call.gateway, after=max(0, int(number) - 1), limit=1)
        message = next(
            (field(item, "id", str) for item in items if field(item, "seq", int) == int(number)), message
        )
    answer = call.gateway.post_once(f"/messages/{segment(message)}/{verb}")
    if call.is_json or verb != "resend":
        return call.tell(answer, f"{DONE[verb]} {_number(answer) or message}")
    new = field(answer, "id", str)
    talk(f"{DONE[verb]} {_number(answer) or new}")
    put(new)
    return 0


def _number(answer: object) -> str:
    """Return the number of a message, as the room shows it."""
    seq = answer.get("seq") if isinstance(answer, dict) else None
    return f"#{seq}" if isinstance(seq, int) else ""


def read_stdin() -> str:
    """Return the text from stdin without its last newline."""
    if sys.stdin is None:
        raise BadInput("expected text on stdin, but stdin is closed")
    raw = sys.stdin.buffer.read(MAX_TEXT_BYTES + 1)
    if len(raw) > MAX_TEXT_BYTES:
        raise TooLarge(f"text is over {MAX_TEXT_BYTES} bytes", "put it into a file and send its path")
    try:
        return raw.decode().rstrip("\n")
    except UnicodeDecodeError as exc:
        raise BadInput("expected text in UTF-8 on stdin, got other bytes") from exc


class _Waiting:
    """Waits for each recipient's reply to one message."""

    def __init__(self, call: VerbCall, sent: Object, recipients: list[str]) -> None:
        self._call = call
        self._sent = sent
        self._id = field(sent, "id", str)
        self._after = field(sent, "seq", int)
        self._open = dict.fromkeys(recipients, "queued")
        self._is_single = len(recipients) == 1
        self._replies: dict[str, Object] = {}
        self._lost: dict[str, str] = {}
        self._gateway: GatewayClient | None = call.gateway
        self._progress = Progress()

    def run(self) -> int:
        started = time.monotonic()
        deadline = started + self._call.args.timeout
        with self._progress:
            while self._open and (left := deadline - time.monotonic()) > 0:
                self._look(min(_POLL_S, left))
                if self._open and time.monotonic() - started > _QUIET_S:
                    waiting = ", ".join(f"{agent} ({state})" for agent, state in self._open.items())
                    self._progress.show(f"waiting for {waiting}…")
        for agent, state in list(self._open.items()):
            self._lose(agent, f"no reply within {self._call.args.timeout:g} s ({state})")
        if self._call.is_json:
            put_json({**self._sent, "replies": self._replies, "failed": self._lost})
        return 1 if self._lost else 0

    def _look(self, wait_s: float) -> None:
        """Read new items; keep waiting while the gateway is unreachable, because the message is safe."""
        try:
            self._gateway = self._gateway or self._call.reconnect()
            self._take_replies(self._gateway, wait_s)
            recipients: Object = {}
            if self._open:
                recipients = field(self._gateway.get(f"/messages/{segment(self._id)}"), "recipients", dict)
            for agent in list(self._open):
                delivery = recipients.get(agent) or {}
                state, reason = str(delivery.get("state") or "queued"), str(delivery.get("reason") or "")
                if state in _LOST:
                    self._lose(agent, f"{state}: {reason}" if reason else state)
                else:
                    self._open[agent] = "working" if state in _TAKEN else reason or state
        except Unreachable:
            self._gateway = None
            self._open = dict.fromkeys(self._open, "the gateway is unreachable")
            time.sleep(min(_RETRY_S, wait_s))

    def _take_replies(self, gateway: GatewayClient, wait_s: float) -> None:
        # Include notices, because a lost delivery causes one, which ends the wait.
        types = "agent_response,human_message,system"
        items = page(gateway, after=self._after, wait=f"{wait_s:.3f}", types=types)
        for item in items:
            self._after = field(item, "seq", int)
            sender = str(item.get("sender"))
            if item.get("replyTo") == self._id and sender in self._open:
                del self._open[sender]
                self._replies[sender] = item
                self._progress.clear()
                text = field(item, "text", str)
                if text and not self._call.is_json:
                    put(text if self._is_single else f"{sender}: {text}")
                    sys.stdout.flush()
                ending = str(item.get("ending") or "")
                if ending:
                    # A turn that broke off counts as lost, regardless of its output so far.
                    self._lose(sender, _ENDINGS.get(ending, ending))

    def _lose(self, agent: str, reason: str) -> None:
        self._open.pop(agent, None)
        self._lost[agent] = reason
        self._progress.clear()
        talk(f"csp: {agent}: {reason}")
