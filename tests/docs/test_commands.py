"""The commands of the pages work: they are executed, in a room of demo agents."""

from collections import Counter
from pathlib import Path

import pytest

from tests.docs.pages import blocks, pages
from tests.docs.playing import missing, play
from tests.panes.place import Place

#: Why a block may not be executed. Another reason needs a discussion.
REASONS = {
    "asks a person",
    "builds a package",
    "changes the shell",
    "depends on this machine",
    "needs a certificate",
    "needs a key",
    "needs a real CLI",
    "needs the network",
    "opens a terminal",
    "runs the tests",
    "runs until Ctrl-C",
    "takes ten minutes",
}
#: Executed by every run; the other pages by ./bin/test --full.
FIRST = ["README.md", "docs/start.md"]
#: Pages that show the commands of the project itself.
OF_THE_PROJECT = {"CONTRIBUTING.md"}
WITH_COMMANDS = [page for page in pages() if page not in OF_THE_PROJECT and blocks(page)]
OTHERS = [page for page in WITH_COMMANDS if page not in FIRST and any(not one.reason for one in blocks(page))]
#: So many blocks are not executed; a new one has to be meant.
MOST_NOT_RUN = 28


@pytest.mark.parametrize("page", FIRST)
def test_the_commands_of_the_first_pages_work(page: str, tmp_path: Path) -> None:
    with Place(tmp_path / "a") as place:
        assert play(page, place) == ""


@pytest.mark.full
@pytest.mark.parametrize("page", OTHERS)
def test_the_commands_of_a_page_work(page: str, tmp_path: Path) -> None:
    with Place(tmp_path / "a") as place:
        assert play(page, place) == ""


def test_every_block_that_is_not_executed_says_why() -> None:
    found = Counter(block.reason for page in WITH_COMMANDS for block in blocks(page) if block.reason)

    assert set(found) <= REASONS
    assert found.total() <= MOST_NOT_RUN, found


def test_no_page_hides_commands_in_a_block_of_another_kind() -> None:
    hidden = [
        block.place for page in pages() for kind in ("sh", "bash", "shell") for block in blocks(page, kind)
    ]

    assert hidden == []


def test_every_line_of_a_block_belongs_to_a_command() -> None:
    strays = [
        block.place
        for page in WITH_COMMANDS
        for block in blocks(page)
        if not block.text.startswith("$ ") or not list(block.commands())
    ]

    assert strays == []


def test_a_shown_line_that_is_not_printed_is_found() -> None:
    shown = ['{"success":true,"seq":3}', "began run-12: …"]

    assert missing(shown, '{"success":true,"seq":41}\nbegan run-7: ada builds\n') == []
    assert missing(shown, '{"success":false,"seq":3}\n') == shown
