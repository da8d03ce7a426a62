"""What the streams of all SDKs have in common."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from csp.agents.api.call_errors import broken_off
from csp.errors import CallFailed

#: What a stream is called that ends because the model will not answer.
REFUSAL: Final = "refusal"
_UNWILLING: Final = frozenset({REFUSAL, "content_filter"})
_LINGER_S: Final = 1.0
#: By which words a server is known to refuse an option, where it may be left out.
_SIGNS: Final = {
    "output_config": ("output_config", "output_format", "json_schema", "structured output", "output format"),
    "text": ("text.format", "json_schema", "structured output", "response_format"),
    "response_format": ("response_format", "json_schema", "schema"),
    "stream_options": ("stream_options",),
    "max_tokens": ("max_tokens",),
}


async def begin(create: Callable[..., Awaitable[Any]], options: Mapping[str, Any], unknown: set[str]) -> Any:
    """Return the stream of a call; options that the server refuses are left out from then on."""
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
    """Return the option that a server does not know, if that is why it refused the call."""
    if getattr(error, "status_code", None) not in (400, 404, 422, 501):
        return ""
    said = str(getattr(error, "message", "")).lower()
    return next((name for name in wanted if any(sign in said for sign in _SIGNS[name])), "")


def is_streamed(events: Any) -> bool:
    """Return whether a server streams; some answer in one piece instead."""
    return not str(events.response.headers.get("content-type", "")).startswith("application/json")


async def check_streamed(events: Any, key: str) -> None:
    """Raise CallFailed with the provider's message if it does not stream."""
    if not is_streamed(events):
        body = await events.response.aread()
        raise broken_off("", body, key, "the provider did not stream its answer")


async def drain(events: Any) -> None:
    """Read what follows the end of an answer, for a second at most.

    An abandoned stream leaves generators behind that cannot be closed in order.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            async for _ in events:
                pass


def latest(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the usage figures of a stream: they only grow, but some servers end with zeros."""
    return {**before, **{name: value for name, value in now.items() if value or name not in before}}


def figures(usage: Any) -> dict[str, Any]:
    """Return the usage that an SDK reports, without unknown fields."""
    return {} if usage is None else dict(usage.model_dump(exclude_none=True))


def check_whole(end: object) -> None:
    """Raise CallFailed if a stream was cut off."""
    if end is None:
        raise CallFailed("the connection was cut in the middle of the answer", is_passing=True)


def check_willing(reason: str | None) -> None:
    """Raise CallFailed if the model declined to answer."""
    if reason in _UNWILLING:
        raise CallFailed("the model declined to answer")
