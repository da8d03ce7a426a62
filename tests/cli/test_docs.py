"""`csp docs`: the pages, printed in the terminal."""

import json
from pathlib import Path

import pytest

from csp.cli import docs as module
from csp.cli import main
from csp.cli.docs import docs_folder, page_names, read_page, title_of
from csp.errors import Broken
from tests.docs.pages import DOCS


def test_every_page_is_listed_once_in_the_order_of_the_contents() -> None:
    names = page_names(DOCS)

    assert sorted(names) == sorted(
        str(path.relative_to(DOCS).with_suffix(""))
        for path in DOCS.rglob("*.md")
        if "_build" not in path.parts
    )
    assert names[:3] == ["index", "start", "agents/index"]
    assert names.index("agents/claude") < names.index("api-models")


def test_the_list_has_titles(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs"]) == 0

    shown = capsys.readouterr()
    assert "start " in shown.out
    assert "Start in five minutes" in shown.out
    assert shown.err == "print one with: csp docs PAGE\n"


def test_a_page_is_printed_without_what_only_a_site_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "start"]) == 0

    text = capsys.readouterr().out
    assert text.startswith("# Start in five minutes\n")
    assert "<!--" not in text
    assert "$ ./bin/start-llm-groupchat.sh --demo --detach\n" in text


@pytest.mark.parametrize("name", ["agents", "agents/index", "docs/agents/index.md"])
def test_a_page_has_the_names_that_people_try(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["docs", name]) == 0

    assert capsys.readouterr().out.startswith(f"# {title_of(read_page(DOCS, 'agents/index'))}\n")


def test_the_last_part_of_a_name_is_enough(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "mcp"]) == 0
    assert capsys.readouterr().out.startswith(f"# {title_of(read_page(DOCS, 'programs/mcp'))}\n")

    assert main(["docs", "http"]) == 2
    assert capsys.readouterr().err == (
        "csp: several pages are called 'http' (choose one of: programs/http, reference/http)\n"
    )


def test_no_table_of_contents_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "index"]) == 0

    assert "toctree" not in capsys.readouterr().out


def test_an_unknown_page_names_a_near_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "human-pan"]) == 2

    assert capsys.readouterr().err == "csp: no page 'human-pan' (did you mean 'human-pane'?)\n"


def test_a_script_can_read_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "glossary", "--json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert (found["page"], found["title"]) == ("glossary", "Glossary")
    assert found["text"].startswith("# Glossary")


def test_the_pages_of_a_wheel_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "index.md").write_text("# Here\n")
    monkeypatch.setattr(module, "_FOLDERS", (tmp_path, DOCS))
    assert docs_folder() == tmp_path
    monkeypatch.setattr(module, "_FOLDERS", (tmp_path / "none",))
    with pytest.raises(Broken, match="docs are missing"):
        docs_folder()
