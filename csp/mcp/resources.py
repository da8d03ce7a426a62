"""The MCP resources, such as the transcript, boards and runs."""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple
from urllib.parse import unquote

from csp.errors import NotFound
from csp.fast_start.fast_json import dumps
from csp.http_client import field, objects, segment
from csp.mcp.room_client import RoomClient

SCHEME: Final = "csp://"
_ITEMS: Final = 200
_JSON: Final = "application/json"
_TEXT: Final = "text/plain"


class ResourceText(NamedTuple):
    """The content of a resource."""

    mime: str
    text: str


class Resource(NamedTuple):
    """A resource; `{}` in its URI stands for an id."""

    uri: str
    name: str
    about: str
    mime: str
    read: Callable[[RoomClient, str], Awaitable[str]]

    @property
    def is_template(self) -> bool:
        return "{" in self.uri


async def _transcript(door: RoomClient, session: str) -> str:
    page = await door.get("/history", limit=_ITEMS, session=session or None)
    return "\n".join(
        f"[{item.get('seq')}] {item.get('sender')} to {item.get('target')}: {item.get('text')}"
        for item in objects(field(page, "items", list))
    )


async def _board(door: RoomClient, session: str) -> str:
    return dumps(await door.get("/board", limit=_ITEMS, session=session or None), is_ascii=False)


async def _runs(door: RoomClient, run: str) -> str:
    return dumps(await door.get(f"/runs/{segment(run)}" if run else "/runs"), is_ascii=False)


async def _catalogue(door: RoomClient, id: str) -> str:
    return dumps(await door.get("/catalogue"), is_ascii=False)


RESOURCES: Final = (
    Resource("csp://transcript", "transcript", "the latest messages in the room", _TEXT, _transcript),
    Resource("csp://transcript/{session}", "session", "the messages in a session", _TEXT, _transcript),
    Resource("csp://board", "board", "the notes on the whiteboard", _JSON, _board),
    Resource("csp://board/{session}", "board of a session", "the notes of a session", _JSON, _board),
    Resource("csp://runs", "runs", "the review runs", _JSON, _runs),
    Resource("csp://runs/{run}", "run", "a run with all its messages", _JSON, _runs),
    Resource("csp://catalogue", "catalogue", "the modes, states and user commands", _JSON, _catalogue),
)


async def read(door: RoomClient, uri: str) -> ResourceText:
    """Return the content of the resource with this URI, or raise NotFound."""
    base, _, id = uri.removeprefix(SCHEME).partition("/")
    for resource in RESOURCES:
        known = resource.uri.removeprefix(SCHEME).partition("/")
        if uri.startswith(SCHEME) and known[0] == base and resource.is_template == bool(id):
            return ResourceText(resource.mime, await resource.read(door, unquote(id)))
    listed = ", ".join(resource.uri for resource in RESOURCES)
    raise NotFound(f"unknown resource {uri!r}", f"expected one of: {listed}")
