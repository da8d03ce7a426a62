"""The whiteboard by tool and as a resource: written once, found by others, in the writer's name."""

import pytest

from tests.mcp.clients import call, join, over_http, refused
from tests.rooms import LiveRoom

pytestmark = pytest.mark.xdist_group("mcp")


async def test_what_one_writes_by_tool_another_finds(room: LiveRoom) -> None:
    scribe = join(room, "scribe")["CSP_AUTH_TOKEN"]
    finder = join(room, "finder")["CSP_AUTH_TOKEN"]
    async with over_http(room, scribe) as client:
        text = "the heron module leaks in close_all_handles, key sk-proj-abcdefghijklmnopqrstuvwxyz012345"
        first = await call(client, "board_add", text=text, tags=["heron"], id="note-of-scribe")
        again = await call(client, "board_add", text=text, tags=["heron"], id="note-of-scribe")
    async with over_http(room, finder) as client:
        exact = await call(client, "board_search", query="close_all_handles")
        words = await call(client, "board_search", query="which module is leaking", rerank=True, limit=3)
        others = await call(client, "board_search", query="heron", author="nobody")
        blank = await refused(client, "board_add", text="  ")
        resource = await client.read_resource("csp://board/room")

    assert first["note"] == again["note"]
    assert (first["note"]["author"], first["note"]["tags"]) == ("scribe", ["heron"])
    assert "sk-proj" not in first["note"]["text"]
    # Other tests write on the same board; what they wrote may be near in meaning.
    assert [hit["note"]["id"] for hit in exact["items"] if hit["how"] == "exact"] == [first["note"]["id"]]
    assert exact["items"][0]["note"]["id"] == words["items"][0]["note"]["id"] == first["note"]["id"]
    assert others["items"] == []
    assert "blank" in blank
    (content,) = resource.contents
    assert "close_all_handles" in str(content)
