"""What a client can read, with a door that only notes what is asked."""

import json
from typing import Any

import pytest

from csp.errors import NotFound
from csp.mcp.resources import read
from tests.mcp.doors import Door


@pytest.mark.parametrize(
    ("uri", "asked", "mime"),
    [
        ("csp://transcript", ("GET", "/history", {"limit": 200}), "text/plain"),
        ("csp://transcript/s-1", ("GET", "/history", {"limit": 200, "session": "s-1"}), "text/plain"),
        ("csp://board", ("GET", "/board", {"limit": 200}), "application/json"),
        ("csp://board/s%201", ("GET", "/board", {"limit": 200, "session": "s 1"}), "application/json"),
        ("csp://runs", ("GET", "/runs", {}), "application/json"),
        ("csp://runs/a%2Fb", ("GET", "/runs/a%2Fb", {}), "application/json"),
    ],
)
async def test_an_address_is_read_from_its_route(
    uri: str, asked: tuple[str, str, dict[str, Any]], mime: str
) -> None:
    door = Door().tell("/history", {"items": []})
    page = await read(door, uri)

    assert door.asked == [asked]
    assert page.mime == mime


async def test_a_transcript_has_a_line_for_each_item() -> None:
    items = [
        {"seq": 1, "sender": "ada", "target": "all", "text": "hi"},
        {"seq": 2, "sender": "bob", "target": "ada", "text": "ho"},
    ]
    page = await read(Door().tell("/history", {"items": items}), "csp://transcript")

    assert page.text == "[1] ada to all: hi\n[2] bob to ada: ho"


async def test_json_keeps_its_characters() -> None:
    page = await read(Door().tell("/board", {"items": ["ü"]}), "csp://board")

    assert json.loads(page.text) == {"items": ["ü"]} and "ü" in page.text


@pytest.mark.parametrize("uri", ["csp://nothing", "csp://nothing/x", "http://board", "board", "csp://"])
async def test_an_address_of_nothing_is_told_what_there_is(uri: str) -> None:
    door = Door()
    with pytest.raises(NotFound, match="unknown resource") as caught:
        await read(door, uri)

    assert caught.value.hint.startswith("expected one of: csp://transcript, csp://transcript/{session}")
    assert door.asked == []
