"""One call of a model, from the first try to its answer: no network, no pauses."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from csp.agents.api.call_errors import ATTEMPTS
from csp.agents.api.model_call import EARLIER_S, STEP_S, ModelCall
from csp.agents.api.providers import Model, Piece, begin, check_whole, check_willing, drain, latest
from csp.agents.api.request import ModelMessage, ModelRequest
from csp.errors import CallFailed
from csp.protocol.enums import MAX_TEXT_BYTES
from csp.protocol.requests import Usage

ASK = ModelRequest(system="be brief", said=(ModelMessage(text="how many?"),))
PASSING = CallFailed("503: busy", is_passing=True)


class Scripted:
    """A model that gives these pieces, one list for each try."""

    def __init__(self, *tries: list[Piece | Exception]) -> None:
        self.tries = list(tries)
        self.count = 0

    async def stream(self, ask: ModelRequest) -> AsyncGenerator[Piece, None]:
        pieces = self.tries[min(self.count, len(self.tries) - 1)]
        self.count += 1
        for piece in pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    async def close(self) -> None:
        pass

    def calling(self, step_s: float = STEP_S) -> ModelCall:
        return ModelCall(Model(self.stream, self.close), "m", "secret", step_s)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Take no pauses; return those that would have been taken."""
    found: list[float] = []
    sleep = asyncio.sleep

    async def skip(seconds: float) -> None:
        found.append(seconds)
        await sleep(0)

    monkeypatch.setattr("csp.agents.api.model_call.asyncio.sleep", skip)
    return found


async def run(model: Scripted, step_s: float = STEP_S) -> tuple[str, ModelCall, list[str], list[str]]:
    one, heard, notes = model.calling(step_s), list[str](), list[str]()
    return await one.run(ASK, heard.append, notes.append), one, heard, notes


async def test_an_answer_is_heard_piece_by_piece_and_counted() -> None:
    text, one, heard, notes = await run(Scripted(["forty", "-two", Usage(input=5, output=2, model="m")]))

    assert (text, heard, notes) == ("forty-two", ["forty", "-two"], [])
    assert one.usage == Usage(input=5, output=2, model="m")


async def test_trouble_that_passes_is_tried_again_with_a_note(pauses: list[float]) -> None:
    model = Scripted([PASSING], ["yes"])
    text, _, _, notes = await run(model)

    assert (text, model.count, len(pauses)) == ("yes", 2, 1)
    assert notes == [f"503: busy; retrying in {pauses[0]:.1f} s"]


async def test_so_many_tries_and_no_more(pauses: list[float]) -> None:
    model = Scripted([PASSING])
    with pytest.raises(CallFailed, match="503: busy"):
        await run(model)

    assert (model.count, len(pauses)) == (ATTEMPTS, ATTEMPTS - 1)
    assert ATTEMPTS == 5 and pauses == sorted(pauses)


async def test_trouble_that_stays_is_not_tried_again(pauses: list[float]) -> None:
    model = Scripted([CallFailed("400: no")])
    with pytest.raises(CallFailed, match="400: no"):
        await run(model)

    assert (model.count, pauses) == (1, [])


async def test_a_pause_beyond_the_end_of_the_step_is_not_begun(pauses: list[float]) -> None:
    model = Scripted([CallFailed("429: slow", is_passing=True, after_s=9.0)])
    with pytest.raises(CallFailed, match="429: slow"):
        await run(model, step_s=10.0)

    assert (model.count, pauses) == (1, []), "nine seconds do not fit into ten less two"


async def test_an_error_of_the_sdk_keeps_the_key_to_itself() -> None:
    with pytest.raises(CallFailed) as caught:
        await run(Scripted([ValueError("the secret is out")]))

    assert "secret" not in caught.value.message


async def test_what_all_tries_took_is_added_up() -> None:
    first = Usage(input=5, output=1, cache_read=2, cache_write=3, reasoning=4, model="m")
    model = Scripted([first, PASSING], ["x", Usage(input=7, output=2, cache_read=1, reasoning=1, model="m")])
    _, one, _, _ = await run(model)

    assert one.usage == Usage(input=12, output=3, cache_read=3, cache_write=3, reasoning=5, model="m")


async def test_a_try_that_nobody_counted_is_estimated_and_marks_the_sum() -> None:
    _, one, _, _ = await run(Scripted(["half", PASSING], ["x", Usage(input=7, output=2, model="m")]))

    assert one.usage is not None and one.usage.estimated
    assert one.usage.input == 7 + ASK.tokens and one.usage.output > 2


async def test_a_try_that_said_nothing_took_nothing() -> None:
    one = Scripted([CallFailed("400: no")]).calling()
    with pytest.raises(CallFailed):
        await one.run(ASK, lambda _: None, lambda _: None)

    assert one.usage is None


async def test_an_answer_ends_shortly_before_the_room_gives_it_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[float] = []
    real = asyncio.timeout_at

    def timeout_at(when: float | None) -> Any:
        ends.append((when or 0.0) - asyncio.get_running_loop().time())
        return real(when)

    monkeypatch.setattr("csp.agents.api.model_call.asyncio.timeout_at", timeout_at)
    for step_s in (300.0, 2.0):
        await run(Scripted(["x"]), step_s)

    assert ends == pytest.approx([300.0 - EARLIER_S, 1.0], abs=0.5)


async def test_an_answer_that_never_ends_is_given_up() -> None:
    async def endless(ask: ModelRequest) -> AsyncGenerator[Piece, None]:
        yield "on "
        await asyncio.Event().wait()

    one = ModelCall(Model(endless, Scripted([]).close), "m", "", 0.02)
    with pytest.raises(CallFailed, match=r"the reply was not complete within 0\.02 s"):
        await one.run(ASK, lambda _: None, lambda _: None)

    assert one.usage is not None and one.usage.estimated


# --- what all providers have in common ---------------------------------------------------------------


class Unknown(Exception):
    status_code = 400

    def __init__(self, said: str) -> None:
        super().__init__(said)
        self.message = said
        self.body = {"error": {"message": said}}


async def test_an_option_that_a_server_does_not_know_is_left_out_from_then_on() -> None:
    calls: list[dict[str, Any]] = []

    async def create(**options: Any) -> str:
        calls.append(options)
        if "response_format" in options:
            raise Unknown("response_format: extra fields")
        return "stream"

    unknown: set[str] = set()
    options = {"response_format": 1, "stream_options": 2}

    assert await begin(create, options, unknown) == "stream"
    assert await begin(create, options, unknown) == "stream"
    assert calls == [options, {"stream_options": 2}, {"stream_options": 2}]
    with pytest.raises(Unknown):
        await begin(_refusing, {"stream_options": 2}, set())


async def _refusing(**options: Any) -> str:
    raise Unknown("the model does not exist")


def test_figures_of_a_stream_only_grow() -> None:
    assert latest({"a": 5, "b": 1}, {"a": 0, "b": 2, "c": 0}) == {"a": 5, "b": 2, "c": 0}


def test_a_stream_that_was_not_at_its_end_is_tried_again() -> None:
    with pytest.raises(CallFailed, match="closed in the middle") as caught:
        check_whole(None)

    assert caught.value.is_passing
    check_whole("stop")


@pytest.mark.parametrize("reason", ["refusal", "content_filter"])
def test_a_model_that_declines_is_not_asked_again(reason: str) -> None:
    with pytest.raises(CallFailed, match="declined to answer") as caught:
        check_willing(reason)

    assert not caught.value.is_passing
    check_willing("stop")
    check_willing(None)


async def test_a_server_that_does_not_hang_up_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.agents.api.providers._LINGER_S", 0.02)

    async def events() -> AsyncGenerator[int, None]:
        yield 1
        await asyncio.Event().wait()

    await asyncio.wait_for(drain(events()), 90)


async def test_an_answer_may_be_as_long_as_a_message_and_no_longer() -> None:
    text, *_ = await run(Scripted(["ä" * (MAX_TEXT_BYTES // 2 - 1), "12"]))
    assert len(text.encode()) == MAX_TEXT_BYTES
    with pytest.raises(CallFailed, match=f"its reply is over {MAX_TEXT_BYTES} bytes"):
        await run(Scripted(["ä" * (MAX_TEXT_BYTES // 2 - 1), "123"]))
