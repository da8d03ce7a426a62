"""The scripted model server: answers by rules, logs what it was asked."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Self, assert_never

from aiohttp import web

from tests.closing import close
from tests.models.anthropic import Anthropic
from tests.models.chat import Chat
from tests.models.dialect import Dialect, Encoder
from tests.models.exchange import Ask, Exchange, is_retry, new_texts
from tests.models.gemini import Gemini
from tests.models.responses import Responses
from tests.models.rules import Call, Cut, Endless, Fail, Part, Pause, Rule, Shell, Text, Used

_DIALECTS: Final[dict[str, Dialect]] = {
    "messages": Anthropic(),
    "responses": Responses(),
    "Content": Gemini(),
    "chat/completions": Chat(),
}
# How the SDKs call themselves: what they ask is never a side call of a CLI.
_SDKS: Final = ("AsyncAnthropic/Python", "AsyncOpenAI/Python")
# What a side call (a title, a topic, a router) is answered; it must pass as text and as JSON.
_SIDE_TEXT: Final = json.dumps(
    {
        "title": "Scripted",
        "isNewTopic": False,
        "complexity_reasoning": "simple",
        "complexity_score": 1,
        "model_choice": "flash",
        "reasoning": "simple",
        "next_speaker": "user",
    }
)
_MAX_BODY: Final = 64 * 2**20


class ModelServer:
    """A model server in a thread of its own, on a loopback port that it picks.

    Each client has its own base address (`url(client)`), so that two of one CLI are told apart.
    Rules are asked in order, the newest first; without a fitting rule the answer is `ok`.
    """

    def __init__(self, rules: Iterable[Rule] = (), *, listener: socket.socket | None = None) -> None:
        self._rules = list(rules)
        self._exchanges: list[Exchange] = []
        self._bodies: list[bytes] = []
        self._lock = threading.Lock()
        self._listener = listener or _listener()
        self._loop = asyncio.new_event_loop()
        self._stopped: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="model-server", daemon=True)
        self.dump_dir: Path | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(120)
        return self

    def __exit__(self, *_: object) -> None:
        if self._stopped is not None:
            self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(10)

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def url(self, client: str) -> str:
        """Return the base address of one client, without a slash at its end."""
        return f"http://127.0.0.1:{self.port}/{client}"

    def add(self, *rules: Rule) -> None:
        """Put rules before those that are there."""
        with self._lock:
            self._rules[:0] = rules

    def reset(self) -> None:
        """Forget all rules."""
        with self._lock:
            self._rules.clear()

    def exchanges(self, client: str = "", kind: str = "") -> list[Exchange]:
        """Return every request of that kind with its answer, in order of arrival."""
        with self._lock:
            return [
                exchange
                for exchange in self._exchanges
                if client in ("", exchange.client) and kind in ("", exchange.ask.kind)
            ]

    def prompts(self, client: str = "") -> list[str]:
        """Return the user's texts that arrived, each once: retries and side calls are left out."""
        return [text for exchange in self.exchanges(client, "main") for text in exchange.prompts]

    def replies(self, client: str = "") -> list[str]:
        """Return the final text of each turn: the blocks after its last tool call, a blank line between."""
        return [
            exchange.reply
            for exchange in self.exchanges(client, "main")
            if exchange.ended == "done" and not exchange.calls
        ]

    def results(self, client: str = "") -> list[str]:
        """Return what the tools returned, as it reached the model."""
        return [result for exchange in self.exchanges(client, "main") for result in exchange.ask.results]

    def saw(self, text: str) -> bool:
        """Tell whether a text stood in any request at all, side calls included."""
        raw, quoted = text.encode(), json.dumps(text)[1:-1].encode()
        with self._lock:
            return any(raw in body or quoted in body for body in self._bodies)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stopped = asyncio.Event()
        app = web.Application(client_max_size=_MAX_BODY)
        app.router.add_route("*", "/{client}/{rest:.*}", self._handle)
        app.router.add_route("*", "/{client}", self._handle)
        # Cancelled when the client goes away, so that an abort is seen at once.
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.SockSite(runner, self._listener)
        await site.start()
        self._ready.set()
        await self._stopped.wait()
        await close(runner)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        client, rest = request.match_info["client"], request.match_info.get("rest", "")
        raw = await request.read()
        self._dump(client, request, raw)
        dialect = next((dialect for mark, dialect in _DIALECTS.items() if mark in rest), None)
        if request.method != "POST" or dialect is None or "count" in rest.lower():
            return _small_answer(rest)
        body: dict[str, Any] = json.loads(raw)
        ask = dialect.read(rest, body)
        if request.headers.get("User-Agent", "").startswith(_SDKS):
            ask = replace(ask, kind="main")
        exchange = self._log(client, request, ask, body, raw)
        try:
            return await self._answer(request, dialect, exchange)
        finally:
            exchange.ended_at = time.time()
            if exchange.ended == "open":
                exchange.ended = "aborted"

    def _dump(self, client: str, request: web.Request, raw: bytes) -> None:
        if self.dump_dir is not None:
            number = len(list(self.dump_dir.iterdir()))
            path = self.dump_dir / f"{number:04d}-{client}-{request.method}.json"
            path.write_bytes(request.path_qs.encode() + b"\n" + raw)

    def _log(self, client: str, request: web.Request, ask: Ask, body: dict[str, Any], raw: bytes) -> Exchange:
        with self._lock:
            same = (old for old in reversed(self._exchanges) if old.client == client)
            before = next((old for old in same if old.ask.kind == ask.kind), None)
            exchange = Exchange(
                number=len(self._exchanges) + 1,
                client=client,
                ask=ask,
                body=body,
                at=time.time(),
                path=request.path_qs,
                headers=dict(request.headers),
                prompts=new_texts(ask, before),
                is_retry=is_retry(ask, before),
            )
            self._exchanges.append(exchange)
            self._bodies.append(raw)
        return exchange

    def _parts(self, exchange: Exchange) -> tuple[Sequence[Part], Used | None]:
        ask = exchange.ask
        with self._lock:
            for rule in self._rules:
                if rule.fits(exchange.client, ask.kind, ask.governing):
                    if rule.times is not None and not rule.step(ask.rounds + 1):
                        rule.times -= 1
                    return rule.step(ask.rounds) or [Text(text="done")], rule.used
        return [Text(text="ok" if ask.kind == "main" else _SIDE_TEXT)], None

    async def _answer(self, request: web.Request, dialect: Dialect, exchange: Exchange) -> web.StreamResponse:
        chosen, used = self._parts(exchange)
        parts = list(chosen)
        if isinstance(parts[0], Pause):
            await asyncio.sleep(parts[0].seconds)
            parts = parts[1:]
        if parts and isinstance(parts[0], Fail):
            exchange.ended = "failed"
            exchange.status, body, headers = _error(dialect, parts[0])
            return web.json_response(body, status=exchange.status, headers=headers)
        encoder = dialect.encoder(exchange.ask, exchange.body, exchange.number)
        encoder.used = used
        if not exchange.ask.is_stream:
            await _Writer(None, dialect, encoder, exchange).write_all(parts)
            return web.json_response(encoder.whole())
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
        )
        await response.prepare(request)
        await _Writer(response, dialect, encoder, exchange).write_all(parts)
        if exchange.is_cut and request.transport is not None:
            request.transport.abort()
        else:
            await response.write_eof()
        return response


class _Writer:
    """Writes the parts of one answer, keeping the log of what went out."""

    def __init__(
        self, response: web.StreamResponse | None, dialect: Dialect, encoder: Encoder, exchange: Exchange
    ) -> None:
        self._response = response
        self._dialect = dialect
        self._encoder = encoder
        self._exchange = exchange

    async def write_all(self, parts: Sequence[Part]) -> None:
        try:
            await self._send(self._encoder.begin())
            for part in parts:
                await self._part(part)
                if self._exchange.ended == "failed":
                    return
            # Marked before the last byte is out: whoever has read it must find the log complete.
            self._exchange.ended = "done"
            await self._send(self._encoder.end())
        except ConnectionError:
            self._exchange.ended = "aborted"

    async def _part(self, part: Part) -> None:
        match part:
            case Text():
                await self._text(part.chunks(), part.delay_s)
            case Endless():
                await self._text(iter(lambda: part.text, None), part.delay_s)
            case Shell():
                await self._call(self._dialect.shell(part, self._exchange.ask))
            case Call():
                await self._call(part)
            case Pause():
                await asyncio.sleep(part.seconds)
            case Fail():
                self._exchange.ended = "failed"
                await self._send(self._encoder.fail(part))
            case Cut():
                self._exchange.ended, self._exchange.is_cut = "failed", True
            case _:
                assert_never(part)

    async def _text(self, chunks: Iterable[str], delay_s: float) -> None:
        await self._send(self._encoder.open_text())
        self._exchange.blocks.append("")
        for chunk in chunks:
            if delay_s:
                await asyncio.sleep(delay_s)
            self._exchange.blocks[-1] += chunk
            await self._send(self._encoder.text(chunk))
        await self._send(self._encoder.close_text())

    async def _call(self, call: Call) -> None:
        self._exchange.calls.append(call.name)
        await self._send(self._encoder.call(call))

    async def _send(self, data: bytes) -> None:
        if self._response is not None and data:
            await self._response.write(data)


def _error(dialect: Dialect, fail: Fail) -> tuple[int, dict[str, Any], dict[str, str]]:
    status, body, headers = dialect.error(fail)
    if fail.text:
        body["error"]["message"] = fail.text
    more = {} if fail.after_s is None else {"Retry-After": f"{fail.after_s:g}"}
    return status, body, {**headers, **more}


def _small_answer(rest: str) -> web.Response:
    if "count" in rest.lower():
        return web.json_response({"input_tokens": 10, "totalTokens": 10})
    if rest.endswith("models"):
        return web.json_response({"object": "list", "data": [], "models": []})
    if not rest:
        return web.Response()
    return web.json_response({}, status=404)


def _listener() -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    listener.setblocking(False)
    return listener
