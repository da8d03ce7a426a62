"""What a room tells a person about itself after it was loaded from a journal."""

import json
import shutil
from pathlib import Path
from typing import Any, Final

from csp.config import Settings
from tests.gateway.served import Clock, ServedRoom

HERE: Final = Path(__file__).parent
JOURNALS: Final = HERE / "journals"
VIEWS: Final = HERE / "views"
_PATHS: Final = (
    *("/agents", "/queue", "/usage", "/sessions", "/runs", "/board", "/mode"),
    "/history?limit=1000",
)
#: The room itself was asked for these later than the journal ends, so they say nothing about it.
_OF_NOW: Final = frozenset({"last_seen", "now", "elapsed_s", "uptime_s"})


async def views_of(journal: Path, folder: Path) -> dict[str, Any]:
    """Serve a copy of the journal at the time of its last line and return what each read route answers."""
    folder.mkdir(parents=True)
    shutil.copyfile(journal, folder / "journal.jsonl")
    async with ServedRoom(folder, Settings(), Clock(last_time(journal))) as room:
        found = {path: await room.get(path) for path in _PATHS}
        for kind in ("sessions", "runs"):
            for item in found[f"/{kind}"]["items"]:
                path = f"/{kind}/{item['id']}"
                found[path] = await room.get(path)
    return {path: _without_now(view) for path, view in found.items()}


def as_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def last_time(journal: Path) -> float:
    """Return the time of the last line that can be read."""
    for line in reversed(journal.read_bytes().splitlines()):
        try:
            return float(json.loads(line)["ts"])
        except (ValueError, KeyError, TypeError):
            continue
    return 0.0


def _without_now(view: Any) -> Any:
    match view:
        case dict():
            return {key: _without_now(value) for key, value in view.items() if key not in _OF_NOW}
        case list():
            return [_without_now(value) for value in view]
        case _:
            return view
