"""Compute the cost of model calls from the installed price list."""

from importlib import metadata
from typing import Final

from csp.model_providers import PROVIDERS
from csp.protocol.requests import Usage
from csp.protocol.session_parts import Price

_PACKAGE: Final = "genai-prices"
_MILLION: Final = 1_000_000
#: A size small enough for the base price, because some models cost more per token for long inputs.
_MANY: Final = 10_000


def cost_usd(
    model: str, usage: Usage, *, provider: str | None = None, url: str | None = None
) -> float | None:
    """Return the cost of a call; None if there is no known price or no list.

    The provider is identified by its name in the list, or else by its address. Several calls are priced as
    calls of equal size, because some models cost more if the input of one call is long.
    """
    try:
        from genai_prices import Usage as Counted
        from genai_prices import calc_price
    except ImportError:
        return None
    total = 0.0
    for times, (uncached, read, written, output) in _alike(usage):
        counted = Counted(
            input_tokens=uncached + read + written,
            cache_read_tokens=read,
            cache_write_tokens=written,
            output_tokens=output,
        )
        try:
            if provider is not None:
                found = calc_price(counted, model, provider_id=provider)
            else:
                found = calc_price(counted, model, provider_api_url=url)
        except (LookupError, ValueError):
            return None
        total += times * float(found.total_price)
    return total


def _alike(usage: Usage) -> list[tuple[int, tuple[int, ...]]]:
    """Split the summed usage of several calls into calls of equal size; return each size with its count."""
    written = min(usage.cache_write, usage.input - usage.cached)
    parts = (usage.input - usage.cached - written, usage.cached, written, usage.output)
    others = max(usage.calls, 1) - 1
    each = tuple(part // (others + 1) for part in parts)
    last = tuple(part - others * one for part, one in zip(parts, each, strict=True))
    return [(others, each), (1, last)] if others else [(1, last)]


def price_of(model: str, provider: str) -> Price | None:
    """Return the price of a provider's model; None if unknown."""
    name = PROVIDERS[provider].prices if provider in PROVIDERS else ""
    if not name:
        return None
    put_in = cost_usd(model, Usage(input=_MANY), provider=name)
    put_out = cost_usd(model, Usage(output=_MANY), provider=name)
    if put_in is None or put_out is None:
        return None
    cached = cost_usd(model, Usage(input=_MANY, cache_read=_MANY), provider=name)
    return Price(
        input=put_in / _MANY * _MILLION,
        output=put_out / _MANY * _MILLION,
        cached=None if cached is None else cached / _MANY * _MILLION,
    )


def source() -> str | None:
    """Return the name and version of the price list; the package has no other date."""
    try:
        return f"{_PACKAGE} {metadata.version(_PACKAGE)}"
    except metadata.PackageNotFoundError:
        return None
