"""What is offered to programs and people changes only with its record."""

from pathlib import Path

from tests.compatibility.interfaces import help_texts, http_description, mcp_tools
from tests.compatibility.record import RECORDED
from tests.compatibility.views import as_text


async def test_the_http_description_is_as_recorded(tmp_path: Path) -> None:
    assert as_text(await http_description(tmp_path / "room")) == _recorded("openapi.json")


async def test_the_mcp_tools_are_as_recorded(tmp_path: Path) -> None:
    assert as_text(await mcp_tools(tmp_path / "room")) == _recorded("mcp_tools.json")


def test_the_help_texts_are_as_recorded() -> None:
    assert help_texts() == _recorded("help.txt")


def _recorded(name: str) -> str:
    return (RECORDED / name).read_text("utf-8")
