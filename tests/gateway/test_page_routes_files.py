"""The files of the page: who gets them, with which headers, which of them."""

from pathlib import Path

import pytest

from csp.gateway import page_routes
from tests.gateway import raw
from tests.gateway.served import Answer, ServedRoom

#: Written from the promise, not from the code.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
TYPES = {
    "a.js": "text/javascript; charset=utf-8",
    "a.css": "text/css; charset=utf-8",
    "a.svg": "image/svg+xml",
    "a.png": "image/png",
    "a.ico": "image/x-icon",
    "a-b_c.1.webmanifest": "application/manifest+json",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page of the test's own."""
    made = tmp_path / "page"
    made.mkdir()
    (made / "index.html").write_text("<!doctype html>")
    monkeypatch.setattr(page_routes, "_FOLDER", made)
    return made


async def _get(room: ServedRoom, path: str, **headers: str) -> Answer:
    return await room.call("GET", path, token=None, headers=headers)


async def test_the_page_needs_no_token(room: ServedRoom) -> None:
    answer = await _get(room, "/")

    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert b"page/main.js" in answer.raw


async def test_each_file_of_the_page_in_the_project_is_served(room: ServedRoom) -> None:
    files = sorted(path for path in page_routes._FOLDER.iterdir() if path.name != page_routes.INDEX)

    assert files
    for path in files:
        answer = await _get(room, f"/page/{path.name}")

        assert (answer.status, answer.raw) == (200, path.read_bytes()), path


@pytest.mark.parametrize("name", TYPES)
async def test_a_file_has_the_type_of_its_name(room: ServedRoom, folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"\x00content")

    answer = await _get(room, f"/page/{name}")

    assert (answer.status, answer.raw) == (200, b"\x00content")
    assert answer.headers["Content-Type"] == TYPES[name]


@pytest.mark.parametrize("path", ["/", "/page/main.js"])
async def test_every_file_has_the_headers_that_keep_others_out(room: ServedRoom, path: str) -> None:
    fresh = await _get(room, path)
    known = await _get(room, path, **{"If-None-Match": fresh.headers["Etag"]})

    assert known.status == 304
    for answer in (fresh, known):
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
        assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("given", ['"other", {tag}', "W/{tag}", "*"])
async def test_what_the_browser_has_is_not_sent_again(room: ServedRoom, given: str) -> None:
    fresh = await _get(room, "/")

    answer = await _get(room, "/", **{"If-None-Match": given.format(tag=fresh.headers["Etag"])})

    assert (answer.status, answer.raw) == (304, b"")
    assert answer.headers["Etag"] == fresh.headers["Etag"]


async def test_an_edit_shows_at_the_next_load(room: ServedRoom, folder: Path) -> None:
    before = await _get(room, "/")
    (folder / "index.html").write_text("<!doctype html><p>new")

    answer = await _get(room, "/", **{"If-None-Match": before.headers["Etag"]})

    assert (answer.status, answer.raw) == (200, b"<!doctype html><p>new")


@pytest.mark.parametrize(
    "path",
    [
        "/page/",
        "/page",
        "/page/.",
        "/page/..",
        "/page/nothing.js",
        "/page/index.html",
        "/page/secret",
        "/page/UPPER.js",
        "/page/a.js%0a",
        "/page/a.js%00",
        "/page/%61.js.py",
        "/page/..%2fsecret.js",
        "/page/..%5csecret.js",
        "/page/../secret.js",
        "/page//secret.js",
        "/page/%2e%2e/secret.js",
        "/page/sub/a.js",
        "/page/folder.js",
        "/page/" + "a" * 300 + ".js",
        "//page/a.js",
    ],
)
async def test_no_name_leads_out_of_the_folder(room: ServedRoom, folder: Path, path: str) -> None:
    (folder / "folder.js").mkdir()
    (folder / "sub").mkdir()
    for place in (folder.parent / "secret.js", folder / "secret", folder / "sub" / "a.js"):
        place.write_text("not for you")

    answer = await raw.exchange(room.port, raw.request("GET", path))

    assert answer.status in (400, 404)
    assert answer.is_refusal, answer
    assert b"not for you" not in answer.raw


@pytest.mark.parametrize(("method", "path"), [("POST", "/"), ("DELETE", "/page/main.js"), ("PUT", "/")])
async def test_the_page_can_only_be_read(room: ServedRoom, method: str, path: str) -> None:
    answer = await room.call(method, path, token=None)

    assert (answer.status, answer.headers["Allow"]) == (405, "GET")
    assert answer.is_refusal


@pytest.mark.parametrize("path", ["/health", "/openapi.json", "/metrics", "/agents", "/nowhere"])
async def test_no_answer_is_kept_or_taken_for_a_script(room: ServedRoom, path: str) -> None:
    answer = await room.call("GET", path)

    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
