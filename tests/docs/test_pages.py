"""The pages build, their links lead somewhere, and the README stays short."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, anchors, links, pages, text_of
from tests.docs.reference import toctrees

MAX_README_BYTES = 8192


# It only computes, for minutes on a machine that computes for others too.
@pytest.mark.timeout(1200)
def test_the_documentation_builds_without_a_warning(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-E",
        "-d",
        str(tmp_path / "cache"),
    ]
    run = subprocess.run(
        [*command, str(DOCS), str(tmp_path / "html")], capture_output=True, text=True, check=False
    )

    assert run.returncode == 0, run.stderr
    assert (tmp_path / "html" / "index.html").is_file()
    assert (tmp_path / "html" / "llms.txt").is_file()


@pytest.mark.parametrize("page", [*pages(), "tests/README.md"])
def test_every_link_leads_to_a_page_of_the_project(page: str) -> None:
    assert [link for link in links(page) if not leads_somewhere(page, link)] == []


def leads_somewhere(page: str, link: str) -> bool:
    """Tell whether a link is to a file, and a heading in it, that exist; outside ones are not followed."""
    if re.match(r"[a-z]+:", link):
        return True
    path, _, anchor = link.partition("#")
    target = (ROOT / page).parent / path if path else ROOT / page
    return target.exists() and (not anchor or anchor in anchors(str(target.resolve().relative_to(ROOT))))


def test_the_readme_is_short() -> None:
    assert len(text_of("README.md").encode()) <= MAX_README_BYTES


def test_the_readme_leads_to_every_page_of_the_first_lists() -> None:
    known = {link.partition("#")[0] for link in links("README.md")}
    listed = {
        f"docs/{name}.md" for caption, names in toctrees() for name in names if caption != "The project"
    }
    deep = {page for page in listed if page.count("/") > 1 or page == "docs/glossary.md"}

    assert listed - deep - known - {"docs/departures.md"} == set()


def test_every_page_is_in_a_list_of_the_index() -> None:
    listed = {f"docs/{name}.md" for _, names in toctrees() for name in names}
    written = {page for page in pages() if page.startswith("docs/")}

    assert written - listed == {"docs/index.md"}
