"""What servers answer that is not in the book: the bytes themselves, read by the real SDKs."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from aiohttp import web

from csp.agents.api.model_call import ModelCall
from csp.agents.api.providers import Target, open_model
from csp.agents.api.request import ModelMessage, ModelRequest, reply_schema
from csp.errors import CallFailed
from csp.model_providers import PROVIDERS
from tests.agents.api_room import KEY
from tests.closing import close

ASK: Final = ModelRequest(
    system="be brief", said=(ModelMessage(text="go"),), schema=reply_schema(("claude", "gpt"))
)
TEXT: Final = '{"message": "äöü 日本語 👩‍👩‍👧"}'
SSE: Final = "text/event-stream; charset=utf-8"
JSON: Final = "application/json"
THREE: Final = ("anthropic", "openai", "openai-compatible")

pytestmark = pytest.mark.xdist_group("api")

Event = dict[str, Any]


def sse(*events: Event, has_names: bool = True, end: str = "\n") -> bytes:
    """Return events as bytes; `end` is that of a line."""
    lines = []
    for event in events:
        name = f"event: {event['type']}{end}" if has_names else ""
        lines.append(f"{name}data: {json.dumps(event, ensure_ascii=False)}{end}{end}")
    return "".join(lines).encode()


# --- the three languages -------------------------------------------------------------------------


def messages(
    text: str = TEXT, *, reason: str = "end_turn", usage: Event | None = None, **last: Any
) -> list[Event]:
    """Return an answer as Anthropic streams it; `last` is what its last figures say."""
    began = usage or {"input_tokens": 100, "cache_read_input_tokens": 300, "output_tokens": 1}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "new": {}}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    return [
        {"type": "message_start", "message": head | {"stop_reason": None, "usage": began}},
        {"type": "ping"},
        {"type": "brand_new", "what": [1]},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        delta,
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 50} | last},
        {"type": "message_stop"},
    ]


def responses(text: str = TEXT, *, status: str = "completed", **fields: Any) -> list[Event]:
    """Return an answer as OpenAI's Responses stream it."""
    usage = {"input_tokens": 400, "input_tokens_details": {"cached_tokens": 300}, "output_tokens": 50}
    whole = {"id": "r", "object": "response", "status": status, "output": [], "usage": usage} | fields
    delta = {"item_id": "i", "output_index": 0, "content_index": 0, "delta": text}
    return [
        {"type": "response.created", "response": whole | {"status": "in_progress", "usage": None}},
        {"type": "response.brand_new", "what": [1]},
        {"type": "response.output_text.delta", **delta, "obfuscation": "x"},
        {"type": f"response.{status}", "response": whole},
    ]


def chat(text: str = TEXT, *, reason: str = "stop", **delta: Any) -> list[Event]:
    """Return an answer as Chat Completions stream it."""
    usage = {"prompt_tokens": 400, "prompt_tokens_details": {"cached_tokens": 300}, "completion_tokens": 50}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "odd": None}

    def choice(said: Event, reason: str | None = None) -> Event:
        return head | {"choices": [{"index": 0, "delta": said, "finish_reason": reason}]}

    return [
        head | {"choices": []},
        choice({"role": "assistant", "content": "", "reasoning_content": "hm"}),
        choice({"content": text} | delta),
        choice({}, reason) | {"usage": usage},
    ]


def streamed(provider: str, events: list[Event], end: str = "\n") -> bytes:
    if provider == "openai-compatible":
        return sse(*events, has_names=False, end=end) + f"data: [DONE]{end}{end}".encode()
    return sse(*events, end=end)


WHOLE: Final = {"anthropic": messages, "openai": responses, "openai-compatible": chat}


# --- a server that answers just this -------------------------------------------------------------

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def bytes_of(body: bytes, kind: str = SSE, status: int = 200, size: int = 0) -> Answer:
    """Answer with these bytes, `size` of them at a time."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=status, headers={"Content-Type": kind})
        await response.prepare(request)
        step = size or len(body) or 1
        for at in range(0, len(body), step):
            await response.write(body[at : at + step])
        return response

    return answer


class Heard:
    """What came of a call, with the bodies that its server has seen."""

    def __init__(self) -> None:
        self.bodies: list[Event] = []
        self.text = ""
        self.failure: CallFailed | None = None
        self.calling: ModelCall

    @property
    def why(self) -> str:
        return self.failure.message if self.failure else ""

    @property
    def figures(self) -> tuple[int, int, int, bool] | None:
        usage = self.calling.usage
        return (usage.input, usage.cache_read, usage.output, usage.estimated) if usage else None


@asynccontextmanager
async def served(answers: list[Answer], bodies: list[Event]) -> AsyncIterator[str]:
    """Give these answers one after the other, the last of them for ever."""

    async def handle(request: web.Request) -> web.StreamResponse:
        bodies.append(await request.json())
        return await answers[min(len(bodies), len(answers)) - 1](request)

    app = web.Application()
    app.router.add_post("/{path:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await close(runner)


async def heard(provider: str, *answers: Answer, step_s: float = 20.0) -> Heard:
    found = Heard()
    async with served(list(answers), found.bodies) as url:
        model = open_model(PROVIDERS[provider], Target(provider=provider, model="m", key=KEY, base_url=url))
        found.calling = ModelCall(model, "m", KEY, step_s)
        try:
            found.text = await found.calling.run(ASK, lambda _: None, lambda _: None)
        except CallFailed as failure:
            found.failure = failure
        finally:
            await model.close()
    return found


# --- bytes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("provider", THREE)
async def test_an_answer_is_the_same_however_its_bytes_are_cut(provider: str, end: str) -> None:
    body = streamed(provider, WHOLE[provider](), end)
    found = await heard(provider, bytes_of(b": a comment\n\n" + body, size=3))

    assert (found.text, found.why) == (TEXT, "")
    assert found.figures == (400, 300, 50, False)


@pytest.mark.parametrize("provider", THREE)
async def test_an_answer_is_over_when_it_says_so_not_when_its_server_hangs_up(provider: str) -> None:
    body = streamed(provider, WHOLE[provider]())

    async def lingering(request: web.Request) -> web.StreamResponse:
        response = await bytes_of(body)(request)
        await asyncio.sleep(30)
        return response

    assert (await heard(provider, lingering, step_s=8.0)).text == TEXT


async def test_a_server_that_does_not_stream_is_heard_all_the_same() -> None:
    message = {"role": "assistant", "content": TEXT}
    whole = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12},
    }
    found = await heard("openai-compatible", bytes_of(json.dumps(whole).encode(), JSON))

    assert (found.text, found.figures, len(found.bodies)) == (TEXT, (7, 0, 5, False), 1)


@pytest.mark.parametrize("provider", THREE)
async def test_an_error_in_place_of_a_stream_is_told_once(provider: str) -> None:
    body = json.dumps({"error": {"message": f"no credit left on {KEY}"}}).encode()
    found = await heard(provider, bytes_of(body, JSON))

    assert found.why.endswith(": no credit left on [key]") and len(found.bodies) == 1


# --- figures -------------------------------------------------------------------------------------


async def test_zeros_at_the_end_do_not_take_back_what_was_counted() -> None:
    events = messages(input_tokens=0, cache_read_input_tokens=0)

    assert (await heard("anthropic", bytes_of(sse(*events)))).figures == (400, 300, 50, False)


async def test_figures_that_come_only_at_the_end_are_taken() -> None:
    events = messages(usage={"input_tokens": 0, "output_tokens": 0}, input_tokens=400)

    assert (await heard("anthropic", bytes_of(sse(*events)))).figures == (400, 0, 50, False)


async def test_an_end_that_is_told_twice_is_an_end() -> None:
    events = messages()
    again = {"type": "message_delta", "delta": {"stop_reason": None}, "usage": {"output_tokens": 50}}
    events.insert(-1, again)
    found = await heard("anthropic", bytes_of(sse(*events)))

    assert (found.text, len(found.bodies)) == (TEXT, 1)


async def test_an_answer_without_figures_is_estimated() -> None:
    found = await heard("openai", bytes_of(sse(*responses(usage=None))))

    assert found.figures is not None and found.figures[3] and found.figures[2] > 0


# --- endings -------------------------------------------------------------------------------------

REFUSALS: Final = {
    "anthropic": messages("", reason="refusal"),
    "openai": [
        *responses("")[:2],
        {"type": "response.refusal.delta", "item_id": "i", "output_index": 0, "delta": "I will not"},
        responses("")[3],
    ],
    "openai-compatible": chat("", refusal="I will not"),
}
FILTERED: Final = {
    "openai": responses("half", status="incomplete", incomplete_details={"reason": "content_filter"}),
    "openai-compatible": chat("half", reason="content_filter"),
}
CUT_SHORT: Final = {
    "anthropic": messages(reason="max_tokens"),
    "openai": responses(status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
    "openai-compatible": chat(reason="length"),
}


@pytest.mark.parametrize(("provider", "events"), [*REFUSALS.items(), *FILTERED.items()])
async def test_who_declines_is_said_to_and_has_been_paid_for(provider: str, events: list[Event]) -> None:
    found = await heard(provider, bytes_of(streamed(provider, events)))

    assert (found.why, len(found.bodies)) == ("the model declined to answer", 1)
    assert found.figures == (400, 300, 50, False)


@pytest.mark.parametrize(("provider", "events"), CUT_SHORT.items())
async def test_what_an_answer_of_full_length_has_said_is_taken(provider: str, events: list[Event]) -> None:
    assert (await heard(provider, bytes_of(streamed(provider, events)))).text == TEXT


@pytest.mark.parametrize(("code", "calls"), [("server_error", 2), ("invalid_prompt", 1)])
@pytest.mark.parametrize("kind", ["error", "response.failed"])
async def test_an_error_in_openais_stream_is_told_in_its_words(kind: str, code: str, calls: int) -> None:
    said = {"code": code, "message": f"odd, {KEY}"}
    error = {"type": "error", "param": None, **said}
    events = responses("half", status="failed", error=said)
    body = sse(*events[:3], error if kind == "error" else events[3])
    found = await heard("openai", bytes_of(body), bytes_of(sse(*responses())))

    assert (len(found.bodies), found.text) == (calls, TEXT if calls == 2 else "")
    assert found.why == ("" if calls == 2 else "the response broke off: odd, [key]")


# --- what a server does not know -----------------------------------------------------------------


@pytest.mark.parametrize(("provider", "option"), [("anthropic", "output_config"), ("openai", "text")])
async def test_a_model_that_knows_no_schema_is_asked_without(provider: str, option: str) -> None:
    words = f"{option}.format: json_schema is not supported by this model"
    refusal = bytes_of(json.dumps({"error": {"message": words}}).encode(), JSON, 400)
    found = await heard(provider, refusal, bytes_of(streamed(provider, WHOLE[provider]())))

    assert found.text == TEXT
    assert [option in body for body in found.bodies] == [True, False]
