"""What tokens cost by the list of prices, and what is said where nobody knows."""

import sys
from importlib import metadata

import pytest

from csp import price_list
from csp.protocol.requests import Usage

#: List prices of this model for a million tokens: 5 US dollars in, 25 out.
MODEL = "claude-opus-4-5"


def test_every_kind_of_token_has_its_price() -> None:
    million = 1_000_000

    def cost(usage: Usage) -> float | None:
        return price_list.cost_usd(MODEL, usage, provider="anthropic")

    assert cost(Usage(input=million)) == 5.0
    assert cost(Usage(output=million)) == 25.0
    # What was read from a cache or written to one is a part of the input.
    assert cost(Usage(input=million, cache_read=million)) == 0.5
    assert cost(Usage(input=million, cache_write=million)) == 6.25


def test_many_calls_cost_as_much_as_each_of_them_alone() -> None:
    # Of this model a call costs twice as much once its input is longer than 200,000 tokens.
    model, calls = "claude-sonnet-4-5", 13
    one = Usage(input=40_000, cache_read=38_000, cache_write=1_500, output=200, calls=1)
    many = Usage(
        input=calls * 40_000,
        cache_read=calls * 38_000,
        cache_write=calls * 1_500,
        output=calls * 200,
        calls=calls,
    )
    odd = Usage(input=calls, cache_read=calls - 1, output=calls + 1, calls=calls)

    def cost(usage: Usage) -> float:
        return price_list.cost_usd(model, usage, provider="anthropic") or 0.0

    assert cost(many) == pytest.approx(calls * cost(one))
    assert cost(odd) == pytest.approx((3 * 1 + 0.3 * (calls - 1) + 15 * (calls + 1)) / 1_000_000)


def test_who_serves_a_model_is_told_by_name_or_by_address() -> None:
    usage = Usage(input=1_000_000)

    assert price_list.cost_usd(MODEL, usage, url="https://api.anthropic.com/v1") == 5.0
    assert price_list.cost_usd(MODEL, usage, url="https://example.com/v1") is None
    assert price_list.cost_usd("no-such-model", usage, provider="anthropic") is None
    assert price_list.cost_usd(MODEL, usage, provider="no-such-provider") is None


@pytest.mark.parametrize(
    ("model", "provider"),
    [(MODEL, "anthropic"), ("gpt-5", "openai"), ("gemini-2.5-flash", "gemini")],
)
def test_a_model_has_a_price_under_our_name_of_its_provider(model: str, provider: str) -> None:
    found = price_list.price_of(model, provider)

    assert found is not None and 0 < found.input < found.output
    if provider == "anthropic":
        assert found.input == pytest.approx(5.0)
        assert found.output == pytest.approx(25.0)
        assert found.cached == pytest.approx(0.5)


def test_what_nobody_knows_has_no_price() -> None:
    assert price_list.price_of(MODEL, "ollama") is None
    assert price_list.price_of("no-such-model", "openai") is None


def test_without_the_list_there_is_no_price(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    assert (price_list.source() or "").startswith("genai-prices ")
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    monkeypatch.setattr(metadata, "version", missing)

    assert price_list.cost_usd(MODEL, Usage(input=1), provider="anthropic") is None
    assert price_list.source() is None
