"""Model providers, each a function that streams a response with the provider's own SDK.

An SDK takes seconds to load, so each is loaded by the function that needs it. The SDKs' own retries are off
because retries are decided in one place for all providers.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from csp.agents.api.call_errors import broken_off
from csp.agents.api.request import SCHEMA_NAME, ModelRequest
from csp.errors import CallFailed
from csp.model_providers import Provider
from csp.protocol.requests import Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI

#: The maximum length of a response, for providers that require one.
MAX_TOKENS: Final = 8192
#: The lowest limit that OpenAI accepts.
_LEAST_OUTPUT: Final = 16
#: The key for servers that need none, because the SDK requires one.
_NO_KEY: Final = "none"
#: The end reason of a stream in which the model declines to respond.
REFUSAL: Final = "refusal"
_UNWILLING: Final = frozenset({REFUSAL, "content_filter"})
_LINGER_S: Final = 1.0
#: Words in a server's error which show that it rejects an option that can be omitted.
_SIGNS: Final = {
    "output_config": ("output_config", "output_format", "json_schema", "structured output", "output format"),
    "text": ("text.format", "json_schema", "structured output", "response_format"),
    "response_format": ("response_format", "json_schema", "schema"),
    "stream_options": ("stream_options",),
    "max_tokens": ("max_tokens",),
}

#: A part of the text or, at the end, the usage.
Piece = str | Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The model to call, with the provider's address and key."""

    provider: str
    model: str
    key: str = field(default="", repr=False)
    base_url: str = ""
    timeout_s: float = 300.0


Stream = Callable[[ModelRequest], AsyncGenerator[Piece, None]]


class Model(NamedTuple):
    """An open model: a function that streams a response, and one that closes the connection."""

    stream: Stream
    close: Callable[[], Awaitable[None]]


# --- Anthropic's Messages ------------------------------------------------------------------------


def anthropic(target: Target) -> Model:
    """Call Anthropic's Messages API."""
    from anthropic import AsyncAnthropic

    client = AsyncAnthropic(
        api_key=target.key, base_url=target.base_url or None, max_retries=0, timeout=target.timeout_s
    )
    unknown: set[str] = set()

    async def stream(ask: ModelRequest) -> AsyncGenerator[Piece, None]:
        form = {"format": {"type": "json_schema", "schema": ask.schema}}
        options: dict[str, Any] = {"output_config": form} if ask.schema is not None else {}
        most = min(ask.max_output or MAX_TOKENS, MAX_TOKENS)
        known = {"model": target.model, "max_tokens": most, "system": ask.system}
        create = partial(client.messages.create, stream=True, messages=ask.messages, **known)
        events = await begin(create, options, unknown)
        counted: dict[str, Any] = {}
        reason = None
        async with events:
            await check_streamed(events, target.key)
            async for event in events:
                if event.type == "message_start":
                    counted = latest(counted, figures(event.message.usage))
                elif event.type == "content_block_delta" and event.delta.type == "text_delta":
                    yield event.delta.text
                elif event.type == "message_delta":
                    counted = latest(counted, figures(event.usage))
                    reason = event.delta.stop_reason or reason
                elif event.type == "message_stop":
                    await drain(events)
        check_whole(reason)
        if counted:
            yield anthropic_usage(counted, target.model)
        check_willing(reason)

    return Model(stream, client.close)


def anthropic_usage(counted: dict[str, Any], model: str) -> Usage:
    """Convert Anthropic's usage to our format, in which the input includes cache reads and writes."""
    read = counted.get("cache_read_input_tokens") or 0
    written = counted.get("cache_creation_input_tokens") or 0
    details = counted.get("output_tokens_details") or {}
    return Usage(
        input=(counted.get("input_tokens") or 0) + read + written,
        output=counted.get("output_tokens") or 0,
        cache_read=read,
        cache_write=written,
        reasoning=details.get("thinking_tokens") or 0,
        model=model,
    )


# --- OpenAI's Responses --------------------------------------------------------------------------


def openai(target: Target) -> Model:
    """Call OpenAI's Responses API without storing anything there."""
    client = _openai_client(target)
    unknown: set[str] = set()

    async def stream(ask: ModelRequest) -> AsyncGenerator[Piece, None]:
        form = {"type": "json_schema", "name": SCHEMA_NAME, "strict": True, "schema": ask.schema}
        options: dict[str, Any] = {"text": {"format": form}} if ask.schema is not None else {}
        known: dict[str, Any] = {"model": target.model, "instructions": ask.system, "input": ask.messages}
        if ask.max_output is not None:
            known["max_output_tokens"] = max(ask.max_output, _LEAST_OUTPUT)
        create = partial(client.responses.create, store=False, stream=True, **known)
        events = await begin(create, options, unknown)
        last: Any = None
        is_refusal = False
        async with events:
            await check_streamed(events, target.key)
            async for event in events:
                if event.type == "response.output_text.delta":
                    yield event.delta
                elif event.type == "response.refusal.delta":
                    is_refusal = True
                elif event.type == "error":
                    raise broken_off(event.code, event.message, target.key)
                elif event.type in ("response.completed", "response.incomplete", "response.failed"):
                    last = event.response
                    await drain(events)
        check_whole(last)
        if counted := figures(last.usage):
            yield responses_usage(counted, target.model)
        if last.status == "failed":
            error = last.error
            raise broken_off(error and error.code, error and error.message, target.key)
        details = last.incomplete_details
        check_willing(REFUSAL if is_refusal else details and details.reason)

    return Model(stream, client.close)


# --- servers with OpenAI's Chat Completions API --------------------------------------------------


def chat(target: Target) -> Model:
    """Call a Chat Completions server; omit options that it rejects from then on."""
    client = _openai_client(target)
    unknown: set[str] = set()

    async def stream(ask: ModelRequest) -> AsyncGenerator[Piece, None]:
        options: dict[str, Any] = {"stream_options": {"include_usage": True}}
        if ask.max_output is not None:
            options["max_tokens"] = ask.max_output
        if ask.schema is not None:
            form = {"name": SCHEMA_NAME, "strict": True, "schema": ask.schema}
            options["response_format"] = {"type": "json_schema", "json_schema": form}
        messages: Any = [{"role": "system", "content": ask.system}, *ask.messages]
        create = partial(client.chat.completions.create, model=target.model, messages=messages, stream=True)
        events = await begin(create, options, unknown)
        usage, reason, is_refusal = None, None, False
        async with events:
            async for said, counted, end in _parts(events, target.key):
                usage = counted or usage
                reason = end or reason
                is_refusal = is_refusal or bool(getattr(said, "refusal", None))
                if said is not None and said.content:
                    yield said.content
        check_whole(reason)
        if usage is not None:
            yield chat_usage(figures(usage), target.model)
        check_willing(REFUSAL if is_refusal else reason)

    return Model(stream, client.close)


async def _parts(events: Any, key: str) -> AsyncGenerator[tuple[Any, Any, str | None], None]:
    """Yield text, usage and the end reason; a server that does not stream returns everything in one part."""
    if is_streamed(events):
        async for event in events:
            one = event.choices[0] if event.choices else None
            yield one and one.delta, event.usage, one and one.finish_reason
        return
    from openai.types.chat import ChatCompletion

    body = await events.response.aread()
    try:
        whole = ChatCompletion.model_validate_json(body)
    except ValueError:
        raise broken_off("", body, key, "the server sent no response") from None
    if not whole.choices:
        raise CallFailed("the server sent no response")
    yield whole.choices[0].message, whole.usage, whole.choices[0].finish_reason


# --- shared by several providers -----------------------------------------------------------------


def _openai_client(target: Target) -> "AsyncOpenAI":
    from openai import AsyncOpenAI

    return AsyncOpenAI(
        api_key=target.key or _NO_KEY,
        base_url=target.base_url or None,
        max_retries=0,
        timeout=target.timeout_s,
    )


def openai_usage(counted: dict[str, Any], model: str, before: str, after: str) -> Usage:
    """Return OpenAI's usage in our format; its two APIs use different names for input and output."""
    put_in = counted.get(f"{before}_tokens_details") or {}
    put_out = counted.get(f"{after}_tokens_details") or {}
    return Usage(
        input=counted.get(f"{before}_tokens") or 0,
        output=counted.get(f"{after}_tokens") or 0,
        cache_read=put_in.get("cached_tokens") or 0,
        cache_write=put_in.get("cache_write_tokens") or 0,
        reasoning=put_out.get("reasoning_tokens") or 0,
        model=model,
    )


# --- shared by all streams -----------------------------------------------------------------------


async def begin(create: Callable[..., Awaitable[Any]], options: Mapping[str, Any], unknown: set[str]) -> Any:
    """Start a call and return its stream; omit options that the server rejects from then on."""
    while True:
        wanted = {name: value for name, value in options.items() if name not in unknown}
        try:
            return await create(**wanted)
        except Exception as error:
            found = unsupported(error, wanted)
            if not found:
                raise
            unknown.add(found)


def unsupported(error: Exception, wanted: Mapping[str, Any]) -> str:
    """Return the option that a server rejected, or an empty string for any other error."""
    if getattr(error, "status_code", None) not in (400, 404, 422, 501):
        return ""
    said = str(getattr(error, "message", "")).lower()
    return next((name for name in wanted if any(sign in said for sign in _SIGNS[name])), "")


def is_streamed(events: Any) -> bool:
    """Return whether a server streams; some return the whole response at once."""
    return not str(events.response.headers.get("content-type", "")).startswith("application/json")


async def check_streamed(events: Any, key: str) -> None:
    """Raise CallFailed with the provider's message if the response is not a stream."""
    if not is_streamed(events):
        body = await events.response.aread()
        raise broken_off("", body, key, "the provider did not stream its response")


async def drain(events: Any) -> None:
    """Read the data after the end of a response, for at most a second.

    An abandoned stream would leave generators that cannot be closed in order.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            async for _ in events:
                pass


def latest(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the usage figures of a stream, which only increase, although some servers end with zeros."""
    return {**before, **{name: value for name, value in now.items() if value or name not in before}}


def figures(usage: Any) -> dict[str, Any]:
    """Return the usage that an SDK reports, without unknown fields."""
    return {} if usage is None else dict(usage.model_dump(exclude_none=True))


def check_whole(end: object) -> None:
    """Raise CallFailed if a stream was cut off."""
    if end is None:
        raise CallFailed("the connection was closed in the middle of the response", is_passing=True)


def check_willing(reason: str | None) -> None:
    """Raise CallFailed if the model declined to respond."""
    if reason in _UNWILLING:
        raise CallFailed("the model declined to answer")


responses_usage: Final = partial(openai_usage, before="input", after="output")
chat_usage: Final = partial(openai_usage, before="prompt", after="completion")


# --- the table of providers ----------------------------------------------------------------------

#: The functions by provider name, as in csp.model_providers.
OPENERS: Final[dict[str, Callable[[Target], Model]]] = {
    "anthropic": anthropic,
    "openai": openai,
    "chat": chat,
}


def open_model(provider: Provider, target: Target) -> Model:
    """Load the provider's SDK and return a model that can be called."""
    return OPENERS[provider.opens](target)
