"""Print documentation pages in the terminal."""

import re
from pathlib import Path
from typing import Final

from csp.cli.arguments import JSON, takes, value
from csp.cli.verb_call import VerbCall
from csp.config import nearest
from csp.errors import BadInput, Broken
from csp.human.safe_text import columns

_PACKAGE: Final = Path(__file__).resolve().parent.parent
#: In a wheel the pages are inside the package; in a clone they are next to it.
_FOLDERS: Final = (_PACKAGE / "docs", _PACKAGE.parent / "docs")
_TITLE: Final = re.compile(r"^# (.+)$", re.MULTILINE)
_TOCTREE: Final = re.compile(r"^```\{toctree\}\n(.*?)^```\n\n?", re.MULTILINE | re.DOTALL)
#: Comments in the pages are instructions for tests.
_COMMENT: Final = re.compile(r"^<!--.*?-->\n+", re.MULTILINE | re.DOTALL)


@takes(
    value("page", "PAGE", "page to print; default: list the pages", nargs="?"),
    JSON,
    examples=("csp docs start", "csp docs agents/claude"),
)
def docs(call: VerbCall) -> int:
    """Print one page as Markdown, or list the pages with their titles."""
    folder = docs_folder()
    titles = {page: title_of(read_page(folder, page)) for page in page_names(folder)}
    wanted = call.args.page
    if not wanted:
        lines = columns([[page, title] for page, title in titles.items()])
        return call.show(titles, lines, "print one with: csp docs PAGE")
    name = wanted.removeprefix("docs/").removesuffix(".md").removesuffix("/index")
    # `csp docs mcp` is enough for programs/mcp.
    same = [page for page in titles if page in (name, f"{name}/index")] or [
        page for page in titles if page.endswith(f"/{name}")
    ]
    if len(same) > 1:
        raise BadInput(f"several pages are called {wanted!r}", f"choose one of: {', '.join(same)}")
    if not same:
        raise BadInput(f"no page {wanted!r}", nearest(name, list(titles)) or "list the pages with: csp docs")
    page = same[0]
    text = read_page(folder, page)
    answer = {"page": page, "title": titles[page], "text": text}
    return call.show(answer, text.rstrip("\n").split("\n"))


def docs_folder() -> Path:
    """Return the folder that contains the pages."""
    for folder in _FOLDERS:
        if (folder / "index.md").is_file():
            return folder
    raise Broken(f"the docs are missing, expected them in one of: {', '.join(map(str, _FOLDERS))}")


def page_names(folder: Path) -> list[str]:
    """Return the names of all pages without `.md`, in the order of the table of contents."""
    found: dict[str, None] = {}

    def add(page: str) -> None:
        found[page] = None
        base = page.rpartition("/")[0]
        for body in _TOCTREE.findall((folder / f"{page}.md").read_text("utf-8")):
            for line in body.splitlines():
                child = f"{base}/{line}" if base else line
                if line and not line.startswith(":") and child not in found:
                    add(child)

    add("index")
    return list(found)


def read_page(folder: Path, page: str) -> str:
    """Return the text of a page without the parts that only the site needs."""
    text = (folder / f"{page}.md").read_text("utf-8")
    return _COMMENT.sub("", _TOCTREE.sub("", text))


def title_of(text: str) -> str:
    found = _TITLE.search(text)
    return found[1] if found else ""
