"""What is asked of the package of OpenAI, with a client that only notes it."""

from types import SimpleNamespace
from typing import Any

import httpx2 as httpx
import msgspec
import openai
import pytest

from csp.errors import CallFailed
from csp.protocol.enums import MessageId
from csp.protocol.notes import NoteView, Source
from csp.room.board_state import note_of
from csp.whiteboard.openai_vector_store import OpenAIStore
from tests.whiteboard.making import noted


class Noting:
    """Stands for the whole client: each call by its dotted name with what it was given."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.answers: dict[str, Any] = {}

    def at(self, name: str) -> Any:
        def call(*args: Any, **given: Any) -> Any:
            self.calls.append((name, args, given))
            answer = self.answers[name]
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call

    def client(self) -> Any:
        files = SimpleNamespace(create=self.at("files.create"), delete=self.at("files.delete"))
        inner = SimpleNamespace(
            **{one: self.at(f"stores.files.{one}") for one in ("list", "create", "delete")}
        )
        stores = {one: self.at(f"stores.{one}") for one in ("create", "update", "search")}
        return SimpleNamespace(files=files, vector_stores=SimpleNamespace(files=inner, **stores))


LEASE = {"anchor": "last_active_at", "days": 7}


@pytest.fixture
def calls() -> Noting:
    return Noting()


@pytest.fixture
def store(calls: Noting) -> OpenAIStore:
    made = OpenAIStore("sk-x", "http://localhost:1/v1")
    made._client = calls.client()
    return made


def error(status: int) -> openai.APIStatusError:
    response = httpx.Response(status, request=httpx.Request("GET", "http://x"))
    kind = openai.NotFoundError if status == 404 else openai.APIStatusError
    return kind("no", response=response, body=None)


def file(id: str, **attributes: Any) -> SimpleNamespace:
    return SimpleNamespace(id=id, attributes=attributes or None)


def note() -> NoteView:
    found = note_of(
        noted(12, "über", author="bob", source=Source(seq=9, type="agent_response", id=MessageId("m-9")))
    )
    assert found is not None
    return found


def test_a_call_is_tried_twice_for_ten_seconds_each() -> None:
    client = OpenAIStore("sk-x", "http://localhost:1/v1")._client

    assert (client.timeout, client.max_retries, client.api_key) == (10.0, 1, "sk-x")
    assert str(client.base_url) == "http://localhost:1/v1/"
    assert OpenAIStore("sk-x", timeout_s=3.0)._client.timeout == 3.0


def test_a_store_lives_for_a_week_after_its_last_use(store: OpenAIStore, calls: Noting) -> None:
    calls.answers["stores.create"] = SimpleNamespace(id="vs-1")

    assert store.create("board of s-1") == "vs-1"
    assert calls.calls == [("stores.create", (), {"name": "board of s-1", "expires_after": LEASE})]


@pytest.mark.parametrize(
    ("status", "lives"), [("completed", True), ("in_progress", True), ("expired", False)]
)
def test_a_store_in_use_is_renewed(store: OpenAIStore, calls: Noting, status: str, lives: bool) -> None:
    calls.answers["stores.update"] = SimpleNamespace(status=status)

    assert store.renew("vs-1") is lives
    assert calls.calls == [("stores.update", ("vs-1",), {"expires_after": LEASE})]


def test_a_store_that_is_gone_is_not_renewed(store: OpenAIStore, calls: Noting) -> None:
    calls.answers["stores.update"] = error(404)

    assert store.renew("vs-1") is False


def test_the_notes_of_a_store_are_known_by_what_is_written_on_its_files(
    store: OpenAIStore, calls: Noting
) -> None:
    calls.answers["stores.files.list"] = [file("f-1", note="n-1"), file("f-2"), file("f-3", note="n-3")]

    assert store.notes("vs-1") == {"n-1", "n-3"}
    assert calls.calls == [("stores.files.list", ("vs-1",), {"limit": 100})]


def test_a_note_is_a_file_with_what_is_known_of_it(store: OpenAIStore, calls: Noting) -> None:
    calls.answers |= {"files.create": SimpleNamespace(id="f-1"), "stores.files.create": None}
    store.add("vs-1", note())
    (_, _, sent), (_, where, placed) = calls.calls

    assert sent["purpose"] == "assistants"
    assert sent["file"] == ("whiteboard_room_0011_bob.txt", "über".encode())
    assert where == ("vs-1",) and placed["file_id"] == "f-1"
    assert placed["attributes"] == {
        "note": "n-12",
        "idx": 11,
        "author": "bob",
        "kind": "note",
        "seq": 12,
        "source": "m-9",
    }


FILES = [
    file("f-1", note="n-1", source="", seq=1.0),
    file("f-5", note="n-5", source="m-4", seq=5.0),
    file("f-9", note="n-9", source="m-8", seq=9.0),
    file("f-x"),
]


@pytest.mark.parametrize(
    ("what", "gone"), [("n-5", ["f-5"]), ("m-8", ["f-9"]), (5, ["f-1"]), (6, ["f-1", "f-5"]), ("n-7", [])]
)
def test_what_is_taken_out_is_deleted_from_the_store_and_from_the_files(
    store: OpenAIStore, calls: Noting, what: str | int, gone: list[str]
) -> None:
    calls.answers |= {"stores.files.list": FILES, "stores.files.delete": None, "files.delete": None}
    store.remove("vs-1", what)

    assert calls.calls[1:] == [
        one
        for id in gone
        for one in (
            ("stores.files.delete", (id,), {"vector_store_id": "vs-1"}),
            ("files.delete", (id,), {}),
        )
    ]


def test_a_search_returns_each_note_once_with_its_best_score(store: OpenAIStore, calls: Noting) -> None:
    hits = [("n-1", 0.9), ("n-2", 0.8), ("n-1", 0.2)]
    data = [SimpleNamespace(attributes={"note": name}, score=score) for name, score in hits]
    data += [SimpleNamespace(attributes=None, score=0.7), SimpleNamespace(attributes={"a": 1}, score=0.6)]
    calls.answers["stores.search"] = SimpleNamespace(data=data)

    assert store.search("vs-1", "q", 200) == {"n-1": 0.9, "n-2": 0.8}
    assert calls.calls == [("stores.search", ("vs-1",), {"query": "q", "max_num_results": 50})]
    store.search("vs-1", "q", 7)
    assert calls.calls[-1][2]["max_num_results"] == 7


REQUEST = httpx.Request("GET", "http://x")


@pytest.mark.parametrize(
    ("cause", "words", "is_passing"),
    [
        (error(500), "OpenAI returned status 500", False),
        (error(429), "OpenAI returned status 429", True),
        (error(408), "OpenAI returned status 408", True),
        (error(401), "OpenAI returned status 401", False),
        (openai.APITimeoutError(REQUEST), "did not respond in time", True),
        (openai.APIConnectionError(request=REQUEST), "cannot be reached", True),
    ],
)
def test_a_failure_says_whether_it_passes(
    store: OpenAIStore, calls: Noting, cause: Exception, words: str, is_passing: bool
) -> None:
    calls.answers["stores.create"] = cause
    with pytest.raises(CallFailed, match=words) as caught:
        store.create("x")

    assert caught.value.is_passing is is_passing


@pytest.mark.parametrize(("text", "sent"), [("", b" "), ("half \ud800", b"half ?")])
def test_a_text_that_the_provider_would_refuse_is_changed(
    store: OpenAIStore, calls: Noting, text: str, sent: bytes
) -> None:
    calls.answers |= {"files.create": SimpleNamespace(id="f-1"), "stores.files.create": None}
    store.add("vs-1", msgspec.structs.replace(note(), text=text))

    assert calls.calls[0][2]["file"][1] == sent
