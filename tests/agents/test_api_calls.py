"""One call of a model, by the real SDKs, to a server on loopback that misbehaves as servers do."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from csp.agents.api.model_call import ModelCall
from csp.agents.api.providers import Model, Target, open_model
from csp.agents.api.request import ModelMessage, ModelRequest, reply_schema
from csp.errors import CallFailed
from csp.model_providers import PROVIDERS
from csp.protocol.requests import Usage
from tests.agents.api_room import KEY, MODELS
from tests.models.rules import Cut, Endless, Fail, Part, Pause, Rule, Text, slow
from tests.models.server import ModelServer
from tests.waiting import wait_until

ASK: Final = ModelRequest(
    system="be brief", said=(ModelMessage(text="go"),), schema=reply_schema(("claude", "gpt"))
)
FOUR: Final = tuple(PROVIDERS)
TWO: Final = ("anthropic", "openai")

pytestmark = pytest.mark.xdist_group("api")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@asynccontextmanager
async def opened(server: ModelServer, provider: str) -> AsyncIterator[Model]:
    base = server.url(provider) + ("" if provider == "anthropic" else "/v1")
    target = Target(provider=provider, model=MODELS[provider], key=KEY, base_url=base)
    model = open_model(PROVIDERS[provider], target)
    try:
        yield model
    finally:
        await model.close()


class Told:
    """What came of a call."""

    def __init__(self, calling: ModelCall) -> None:
        self.calling = calling
        self.text = ""
        self.heard: list[str] = []
        self.notes: list[str] = []
        self.failure: CallFailed | None = None


async def told(server: ModelServer, provider: str, *, step_s: float = 30.0, ask: ModelRequest = ASK) -> Told:
    async with opened(server, provider) as model:
        calling = ModelCall(model, MODELS[provider], KEY, step_s)
        said = Told(calling)
        try:
            said.text = await calling.run(ask, said.heard.append, said.notes.append)
        except CallFailed as failure:
            said.failure = failure
        return said


def answer(server: ModelServer, *parts: Part, times: int | None = None) -> None:
    server.add(Rule(reply=list(parts), times=times))


# --- when all goes well --------------------------------------------------------------------------


@pytest.mark.parametrize("provider", FOUR)
async def test_an_answer_is_heard_as_it_comes_then_counted(server: ModelServer, provider: str) -> None:
    reply = '{"message": "one two three, 日本", "handoff": null, "final": true}'
    answer(server, Text(text=reply, chunk_chars=5))
    said = await told(server, provider)

    assert said.text == reply
    assert len(said.heard) > 3 and "".join(said.heard) == "one two three, 日本"
    usage = said.calling.usage
    assert usage is not None and usage.input > 0 and usage.output > 0
    assert (usage.model, usage.estimated, said.notes) == (MODELS[provider], False, [])


def schema_in(provider: str, body: dict[str, Any]) -> object:
    if provider == "anthropic":
        return body["output_config"]["format"]["schema"]
    if provider == "openai":
        return body["text"]["format"]["schema"]
    return body["response_format"]["json_schema"]["schema"]


@pytest.mark.parametrize("provider", FOUR)
async def test_a_call_has_schema_system_and_key_in_their_places(server: ModelServer, provider: str) -> None:
    await told(server, provider)
    (exchange,) = server.exchanges()

    assert schema_in(provider, exchange.body) == ASK.schema
    assert "be brief" in str(exchange.body) and exchange.ask.governing == "go"
    sent = exchange.headers.get("X-Api-Key") or exchange.headers["Authorization"]
    assert sent.removeprefix("Bearer ") == KEY


@pytest.mark.parametrize("provider", FOUR)
async def test_plain_words_are_asked_for_without_a_schema(server: ModelServer, provider: str) -> None:
    said = await told(server, provider, ask=ModelRequest(system="s", said=(ModelMessage(text="go"),)))
    (exchange,) = server.exchanges()

    assert said.text == "ok"
    assert not {"output_config", "text", "response_format"} & set(exchange.body)


async def test_a_server_that_knows_no_schema_is_asked_without_from_then_on(server: ModelServer) -> None:
    answer(server, Fail(kind="invalid", text="unknown parameter: response_format"), times=1)
    async with opened(server, "openai-compatible") as model:
        for _ in range(2):
            calling = ModelCall(model, "llama", KEY, 30.0)
            assert await calling.run(ASK, lambda _: None, lambda _: None) == "ok"

    has_schema = ["response_format" in exchange.body for exchange in server.exchanges()]
    assert has_schema == [True, False, False]


async def test_tokens_that_nobody_counted_are_estimated(server: ModelServer) -> None:
    answer(server, Fail(kind="invalid", text="stream_options is not supported"), times=1)
    said = await told(server, "openai-compatible")

    assert said.text == "ok"
    assert said.calling.usage is not None and said.calling.usage.estimated


# --- when it does not ----------------------------------------------------------------------------


@pytest.mark.parametrize("provider", TWO)
async def test_429_is_tried_again_after_the_time_the_provider_wants(
    server: ModelServer, provider: str
) -> None:
    answer(server, Fail(kind="rate", after_s=1.2), times=1)
    said = await told(server, provider)
    first, second = server.exchanges()

    assert (said.text, said.failure) == ("ok", None)
    assert second.at - first.ended_at >= 1.1
    assert len(said.notes) == 1 and said.notes[0].startswith("429: ")


@pytest.mark.parametrize("provider", TWO)
@pytest.mark.parametrize("kind", ["server", "overloaded"])
async def test_5xx_is_tried_again(server: ModelServer, provider: str, kind: str) -> None:
    answer(server, Fail(kind=kind), times=1)
    said = await told(server, provider)

    assert (said.text, len(server.exchanges()), len(said.notes)) == ("ok", 2, 1)


@pytest.mark.parametrize("provider", FOUR)
@pytest.mark.parametrize("kind", ["auth", "invalid"])
async def test_other_refusals_are_not_tried_again(server: ModelServer, provider: str, kind: str) -> None:
    answer(server, Fail(kind=kind))
    said = await told(server, provider)

    assert said.failure is not None and said.failure.message[:3] in ("400", "401")
    assert (len(server.exchanges()), said.notes, said.calling.usage) == (1, [], None)


@pytest.mark.parametrize("provider", FOUR)
async def test_a_connection_that_is_cut_in_mid_stream_is_tried_again(
    server: ModelServer, provider: str
) -> None:
    answer(server, Text(text="half of it", chunk_chars=3), Cut(), times=1)
    said = await told(server, provider)

    assert (said.text, len(server.exchanges()), len(said.notes)) == ("ok", 2, 1)
    assert said.calling.usage is not None and said.calling.usage.estimated, "the half was paid for too"


@pytest.mark.parametrize("provider", TWO)
async def test_an_error_in_the_stream_is_tried_again_if_it_passes(server: ModelServer, provider: str) -> None:
    answer(server, Text(text="half"), Fail(kind="server"), times=1)

    assert (await told(server, provider)).text == "ok"


async def test_a_server_that_is_not_there_is_a_failure_with_one_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("csp.agents.api.model_call.wait_s", lambda failure, tries: 0.0)
    target = Target(provider="openai", model="gpt-5", key=KEY, base_url="http://127.0.0.1:9/v1")
    model = open_model(PROVIDERS["openai"], target)
    calling = ModelCall(model, "gpt-5", KEY)
    with pytest.raises(CallFailed, match=r"no connection to the provider \(APIConnectionError\)"):
        await calling.run(ASK, lambda _: None, lambda _: None)
    await model.close()


@pytest.mark.parametrize("provider", TWO)
async def test_a_reply_that_never_ends_is_given_up_in_time(
    server: ModelServer, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of the loop jumps to the last second as soon as the first words are there."""
    answer(server, Endless(delay_s=0.02))
    loop = asyncio.get_running_loop()
    async with opened(server, provider) as model:
        calling = ModelCall(model, MODELS[provider], KEY, 60.0)
        said = Told(calling)

        def hear(words: str) -> None:
            if not said.heard:
                monkeypatch.setattr(loop, "time", lambda: time.monotonic() + 58.0)
            said.heard.append(words)

        with pytest.raises(CallFailed, match=r"^the reply was not complete within 60 s$"):
            await calling.run(ASK, hear, said.notes.append)

    assert said.calling.usage is not None and said.calling.usage.output > 0
    (exchange,) = server.exchanges()
    await wait_until(lambda: exchange.ended == "aborted", what="the end of the call")


async def test_an_answer_that_floods_is_given_up(server: ModelServer) -> None:
    answer(server, Endless(text="x" * 20_000, delay_s=0.0))
    said = await told(server, "anthropic")

    assert said.failure is not None and said.failure.message == "its reply is over 262144 bytes"


async def test_a_wait_longer_than_the_step_is_not_begun(server: ModelServer) -> None:
    answer(server, Fail(kind="rate", after_s=600))
    said = await told(server, "anthropic")

    assert said.failure is not None and said.failure.after_s == 600
    assert len(server.exchanges()) == 1


@pytest.mark.parametrize("provider", FOUR)
async def test_a_call_that_is_cancelled_ends_at_once(server: ModelServer, provider: str) -> None:
    answer(server, Text(text="begun "), Pause(seconds=3600))
    async with opened(server, provider) as model:
        heard: list[str] = []
        calling = ModelCall(model, "m", KEY)
        task = asyncio.ensure_future(calling.run(ASK, heard.append, lambda _: None))
        await wait_until(lambda: heard, what="the first words")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    # The model has not finished: nothing but the cancelled call has ended the exchange.
    (exchange,) = server.exchanges()
    await wait_until(lambda: exchange.ended == "aborted", what="the end of the call")


@pytest.mark.parametrize("provider", FOUR)
async def test_no_failure_tells_anything_of_the_key(server: ModelServer, provider: str) -> None:
    for kind in ("auth", "invalid"):
        answer(server, Fail(kind=kind, text=f"bad key {KEY} or {KEY[:7]}****{KEY[-4:]}"))
        said = await told(server, provider)
        assert said.failure is not None
        words = f"{said.failure.message} {said.failure.hint} {said.failure!r}"
        assert KEY not in words and KEY[-4:] not in words and KEY[:7] not in words


async def test_what_several_tries_took_is_added_up(server: ModelServer) -> None:
    answer(server, slow("some words that are lost", 0.1), Cut(), times=1)
    said = await told(server, "anthropic")
    (_, second) = server.exchanges()

    assert said.calling.usage is not None
    assert said.calling.usage.input >= ASK.tokens + second.ask.tokens
    assert isinstance(said.calling.usage, Usage)
