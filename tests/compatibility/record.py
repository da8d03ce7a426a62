"""Record what the tests of compatibility compare with: python -m tests.compatibility.record.

Run it when a change of behaviour is meant, and read the difference before you commit it.
"""

import asyncio
import tempfile
from pathlib import Path

from tests.compatibility.interfaces import help_texts, http_description, mcp_tools
from tests.compatibility.views import JOURNALS, VIEWS, as_text, views_of

RECORDED = Path(__file__).parent / "recorded"


async def _record(folder: Path) -> None:
    RECORDED.mkdir(exist_ok=True)
    (RECORDED / "openapi.json").write_text(as_text(await http_description(folder / "http")), "utf-8")
    (RECORDED / "mcp_tools.json").write_text(as_text(await mcp_tools(folder / "mcp")), "utf-8")
    (RECORDED / "help.txt").write_text(help_texts(), "utf-8")
    VIEWS.mkdir(exist_ok=True)
    for journal in sorted(JOURNALS.glob("*.jsonl")):
        views = await views_of(journal, folder / journal.stem)
        (VIEWS / f"{journal.stem}.json").write_text(as_text(views), "utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(_record(Path(name)))
