"""Who serves models: one function each, which streams an answer by the provider's own SDK.

An SDK takes seconds to load, so each is loaded by the function that needs it. Their own retries are off:
whether a call is worth another try is decided in one place for all.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from csp.agents.api.call_errors import broken_off
from csp.agents.api.request import SCHEMA_NAME, ModelRequest
from csp.agents.api.sdk_streams import (
    REFUSAL,
    begin,
    check_streamed,
    check_whole,
    check_willing,
    drain,
    figures,
    is_streamed,
    latest,
)
from csp.errors import CallFailed
from csp.model_providers import Provider
from csp.protocol.requests import Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI

#: How long the answer of a model may be, where its provider wants to be told.
MAX_TOKENS: Final = 8192
#: OpenAI refuses to be limited to less.
_LEAST_OUTPUT: Final = 16
#: For servers that want no key; the SDK wants one.
_NO_KEY: Final = "none"

#: A piece of text, or at the end what it took.
Piece = str | Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The model to call, with its address and its key."""

    provider: str
    model: str
    key: str = field(default="", repr=False)
    base_url: str = ""
    timeout_s: float = 300.0


Stream = Callable[[ModelRequest], AsyncGenerator[Piece, None]]


class Model(NamedTuple):
    """An open model: a function that streams an answer and one that closes it."""

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
    """Return Anthropic's figures as we count: its input leaves out what came from a cache or went there."""
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


def responses_usage(counted: dict[str, Any], model: str) -> Usage:
    """Return OpenAI's figures as we count."""
    return _openai_usage(counted, "input", "output", model)


# --- servers that speak OpenAI's Chat Completions ------------------------------------------------


def chat(target: Target) -> Model:
    """Call a Chat Completions server; options that it does not know are left out from then on."""
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
    """Yield words, figures, the reason to end; a server that does not stream has all of them in one part."""
    if is_streamed(events):
        async for event in events:
            one = event.choices[0] if event.choices else None
            yield one and one.delta, event.usage, one and one.finish_reason
        return
    whole = _completion(await events.response.aread(), key)
    yield whole.choices[0].message, whole.usage, whole.choices[0].finish_reason


def _completion(body: bytes, key: str) -> Any:
    from openai.types.chat import ChatCompletion

    try:
        whole = ChatCompletion.model_validate_json(body)
    except ValueError:
        raise broken_off("", body, key, "the server gave no answer") from None
    if not whole.choices:
        raise CallFailed("the server gave no answer")
    return whole


def chat_usage(counted: dict[str, Any], model: str) -> Usage:
    """Return the figures of a Chat Completions server as we count."""
    return _openai_usage(counted, "prompt", "completion", model)


# --- what several share --------------------------------------------------------------------------


def _openai_client(target: Target) -> "AsyncOpenAI":
    from openai import AsyncOpenAI

    return AsyncOpenAI(
        api_key=target.key or _NO_KEY,
        base_url=target.base_url or None,
        max_retries=0,
        timeout=target.timeout_s,
    )


def _openai_usage(counted: dict[str, Any], before: str, after: str, model: str) -> Usage:
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


# --- which function calls whom -------------------------------------------------------------------

#: By the names in csp.model_providers.
OPENERS: Final[dict[str, Callable[[Target], Model]]] = {
    "anthropic": anthropic,
    "openai": openai,
    "chat": chat,
}


def open_model(provider: Provider, target: Target) -> Model:
    """Return a model that can be called; loads the SDK of its provider."""
    return OPENERS[provider.opens](target)
