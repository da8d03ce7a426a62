"""Who serves models: one function each, which streams an answer by the provider's own SDK.

An SDK takes seconds to load, so each is loaded by the function that needs it. Their own retries are off:
whether a call is worth another try is decided in one place for all.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from csp.agents.api.asking import SCHEMA_NAME, Ask
from csp.errors import BadInput, CallFailed
from csp.wire import Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI

#: How long the answer of a model may be, where its provider wants to be told.
MAX_TOKENS: Final = 8192
#: For servers that want no key; the SDK wants one.
_NO_KEY: Final = "none"
_GEMINI_URL: Final = "https://generativelanguage.googleapis.com/v1beta/openai/"

#: A piece of text, or at the end what it took.
Piece = str | Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Which model to call, where, with which key."""

    provider: str
    model: str
    key: str = field(default="", repr=False)
    base_url: str = ""
    timeout_s: float = 300.0


Stream = Callable[[Ask], AsyncGenerator[Piece, None]]


class Model(NamedTuple):
    """A model that can be called, until it is closed."""

    stream: Stream
    close: Callable[[], Awaitable[None]]


# --- Anthropic's Messages ------------------------------------------------------------------------


def anthropic(target: Target) -> Model:
    """Call Anthropic's Messages API."""
    from anthropic import AsyncAnthropic

    client = AsyncAnthropic(
        api_key=target.key, base_url=target.base_url or None, max_retries=0, timeout=target.timeout_s
    )

    async def stream(ask: Ask) -> AsyncGenerator[Piece, None]:
        options: dict[str, Any] = {"system": ask.system, "messages": ask.messages}
        if ask.schema is not None:
            options["output_config"] = {"format": {"type": "json_schema", "schema": ask.schema}}
        events = await client.messages.create(
            model=target.model, max_tokens=MAX_TOKENS, stream=True, **options
        )
        counted: dict[str, Any] = {}
        reason = None
        async with events:
            async for event in events:
                if event.type == "message_start":
                    counted |= _figures(event.message.usage)
                elif event.type == "content_block_delta" and event.delta.type == "text_delta":
                    yield event.delta.text
                elif event.type == "message_delta":
                    counted |= _figures(event.usage)
                    reason = event.delta.stop_reason
        _check_end(reason)
        yield anthropic_usage(counted, target.model)

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
    """Call OpenAI's Responses API; nothing of it is to be kept there."""
    client = _openai_client(target)

    async def stream(ask: Ask) -> AsyncGenerator[Piece, None]:
        options: dict[str, Any] = {"instructions": ask.system, "input": ask.messages}
        if ask.schema is not None:
            form = {"type": "json_schema", "name": SCHEMA_NAME, "strict": True, "schema": ask.schema}
            options["text"] = {"format": form}
        events = await client.responses.create(model=target.model, store=False, stream=True, **options)
        last = None
        async with events:
            async for event in events:
                if event.type == "response.output_text.delta":
                    yield event.delta
                elif event.type == "response.failed":
                    raise _failed(event.response.error)
                elif event.type in ("response.completed", "response.incomplete"):
                    last = event.response
        _check_end(last and last.status)
        yield responses_usage(_figures(last.usage if last else None), target.model)

    return Model(stream, client.close)


def responses_usage(counted: dict[str, Any], model: str) -> Usage:
    """Return OpenAI's figures as we count."""
    return _openai_usage(counted, "input", "output", model)


def _failed(error: Any) -> CallFailed:
    code = str(getattr(error, "code", "") or "")
    is_passing = code in ("server_error", "rate_limit_exceeded", "server_is_overloaded")
    return CallFailed(f"the answer broke off: {code or 'failed'}", is_passing=is_passing)


# --- servers that speak OpenAI's Chat Completions ------------------------------------------------


def chat(target: Target) -> Model:
    """Call a server that speaks Chat Completions; what it does not know is left out from then on."""
    client = _openai_client(target)
    unknown: set[str] = set()

    async def begin(ask: Ask) -> Any:
        options: dict[str, Any] = {"stream_options": {"include_usage": True}}
        if ask.schema is not None:
            form = {"name": SCHEMA_NAME, "strict": True, "schema": ask.schema}
            options["response_format"] = {"type": "json_schema", "json_schema": form}
        messages: Any = [{"role": "system", "content": ask.system}, *ask.messages]
        while True:
            wanted = {name: value for name, value in options.items() if name not in unknown}
            try:
                return await client.chat.completions.create(
                    model=target.model, messages=messages, stream=True, **wanted
                )
            except Exception as error:
                found = unsupported(error, wanted)
                if not found:
                    raise
                unknown.add(found)

    async def stream(ask: Ask) -> AsyncGenerator[Piece, None]:
        usage, reason = None, None
        events = await begin(ask)
        async with events:
            async for event in events:
                usage = event.usage or usage
                for choice in event.choices[:1]:
                    reason = choice.finish_reason or reason
                    if choice.delta.content:
                        yield choice.delta.content
        _check_end(reason)
        if usage is not None:
            yield chat_usage(_figures(usage), target.model)

    return Model(stream, client.close)


def unsupported(error: Exception, wanted: dict[str, Any]) -> str:
    """Return which of the options a server has refused to know, if that is why it refused the call."""
    if getattr(error, "status_code", None) not in (400, 404, 422, 501):
        return ""
    said = str(getattr(error, "message", "")).lower()
    signs = {
        "response_format": ("response_format", "json_schema", "schema"),
        "stream_options": ("stream_options",),
    }
    return next((name for name in wanted if any(sign in said for sign in signs[name])), "")


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


def _figures(usage: Any) -> dict[str, Any]:
    """Return what an SDK counted, without what it does not know."""
    return {} if usage is None else dict(usage.model_dump(exclude_none=True))


def _check_end(reason: str | None) -> None:
    """Raise where a stream ended that was not at its end, or where a model declined to answer."""
    if reason is None:
        raise CallFailed("the connection was cut in the middle of the answer", is_passing=True)
    if reason in ("refusal", "content_filter"):
        raise CallFailed("the model declined to answer")


# --- the table -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One who serves models.

    `extra` is what has to be installed, by the name of the package; `prices` is its name in the list of
    prices, empty for a server of which nobody knows what it asks. Such a server gets a key only if somebody
    names one: that of another provider is none of its business.
    """

    open: Callable[[Target], Model]
    extra: str
    key_env: str
    prices: str = ""
    base_url: str = ""
    needs_key: bool = True
    needs_url: bool = False


PROVIDERS: Final = {
    "anthropic": Provider(open=anthropic, extra="anthropic", key_env="ANTHROPIC_API_KEY", prices="anthropic"),
    "openai": Provider(open=openai, extra="openai", key_env="OPENAI_API_KEY", prices="openai"),
    "gemini": Provider(
        open=chat, extra="openai", key_env="GEMINI_API_KEY", prices="google", base_url=_GEMINI_URL
    ),
    "openai-compatible": Provider(open=chat, extra="openai", key_env="", needs_key=False, needs_url=True),
}


def provider_named(name: str) -> Provider:
    """Return a provider, or say which there are."""
    found = PROVIDERS.get(name)
    if found is None:
        raise BadInput(f"unknown provider {name!r}", f"expected one of: {', '.join(PROVIDERS)}")
    return found
