"""`csp web` prints a link that lets one page in, and opens it where there is a browser."""

import os
import re
import shlex
import signal
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
import segno

from csp.cli import web
from csp.cli.web import why_no_browser
from csp.errors import Unauthenticated
from csp.http_client import GatewayClient
from tests.cli.live import Place
from tests.cli.recording import Recorded, call_of, with_settings
from tests.waiting import wait_until_sync

#: Nothing here that a browser could be opened with, whatever the machine of the test has.
NO_DISPLAY = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "BROWSER": "", "SSH_CONNECTION": "", "SSH_TTY": ""}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.close()


def _enter(url: str) -> str:
    """Use a link as the page does; return the page's token."""
    base, _, code = url.partition("/#link=")
    return str(GatewayClient(base, "").post("/page/enter", {"code": code})["token"])


def _browser(place: Place) -> tuple[str, Path]:
    """Return a command that stands in for a browser, with the file in which it notes what it was given."""
    noted = place.home / "noted"
    program = place.home / "browser"
    code = f"import pathlib, sys; pathlib.Path({str(noted)!r}).write_text(sys.argv[1])"
    program.write_text(f'#!/bin/sh\necho noise\nexec {shlex.quote(sys.executable)} -c "{code}" "$1"\n')
    program.chmod(0o700)
    return f"{program} %s", noted


def test_the_link_lets_one_page_in(place: Place) -> None:
    place.gateway()
    done = place.csp("web", **NO_DISPLAY)
    url = done.out.strip()
    token = _enter(url)

    assert done.code == 0
    assert re.fullmatch(re.escape(place.room().url) + r"/#link=[\w-]{22,}", url)
    assert done.err == (
        "not opened (there is no display); open the link yourself; it works once, within two minutes\n"
    )
    assert GatewayClient(place.room().url, token).get("/queue") == {"items": []}
    with pytest.raises(Unauthenticated):
        _enter(url)


def test_no_open_opens_nothing(place: Place) -> None:
    place.gateway()
    browser, noted = _browser(place)
    done = place.csp("web", "--no-open", **NO_DISPLAY | {"BROWSER": browser})

    assert done.err.startswith("not opened (as requested);")
    assert not noted.exists()


def test_a_browser_gets_the_link_and_stdout_is_ours(place: Place) -> None:
    place.gateway()
    browser, noted = _browser(place)
    done = place.csp("web", **NO_DISPLAY | {"BROWSER": browser})

    assert done.err == "opened in your browser; the link works once, within two minutes\n"
    assert noted.read_text() == done.out.strip()


def test_a_browser_that_stays_does_not_keep_a_script_waiting(place: Place) -> None:
    place.gateway()
    began = place.home / "began"
    program = place.home / "browser"
    program.write_text(f"#!/bin/sh\necho $$ > {shlex.quote(str(began))}\nexec sleep 600\n")
    program.chmod(0o700)
    done = place.csp("web", **NO_DISPLAY | {"BROWSER": f"{program} %s"})

    assert (done.code, done.err.partition(";")[0]) == (0, "opened in your browser")
    _end(began)


def _end(began: Path) -> None:
    os.kill(int(began.read_text()), signal.SIGKILL)


def test_the_link_stands_in_no_command_line(place: Place) -> None:
    """A desktop's own browser is led on by a file that only its user may read."""
    place.gateway()
    _, noted = _browser(place)
    # The only browser that there is.
    bin_dir = place.home / "bin"
    bin_dir.mkdir()
    (place.home / "browser").rename(bin_dir / "xdg-open")
    done = place.csp("web", **NO_DISPLAY | {"DISPLAY": ":0", "PATH": str(bin_dir)})
    target = wait_until_sync(lambda: noted.read_text() if noted.exists() else "", 90, "the browser")
    stone = Path(url2pathname(urlsplit(target).path))

    assert done.err.startswith("opened in your browser")
    assert target.startswith("file://")
    assert f"0; url={done.out.strip()}" in stone.read_text()
    assert stat.S_IMODE(stone.stat().st_mode) == 0o600
    assert stat.S_IMODE(stone.parent.stat().st_mode) == 0o700


def test_a_phone_gets_a_link_with_its_code_and_the_fingerprint(place: Place) -> None:
    place.gateway("--lan", "127.0.0.2")
    done = place.csp("web", "--lan", "127.0.0.2", XDG_DATA_HOME="")
    url = done.out.strip()
    as_json = place.csp("web", "--lan", "127.0.0.2", "--json").json

    assert done.code == 0, done.err
    assert re.fullmatch(re.escape(place.room().lan) + r"/#link=[\w-]{22,}", url)
    assert place.room().lan.startswith("https://127.0.0.2:")
    assert "\n".join(web.qr_lines(url)) in done.err
    assert sorted(as_json) == ["certificate", "expires", "fingerprint", "url"]
    assert as_json["fingerprint"][:47] in done.err and as_json["fingerprint"][48:] in done.err
    assert Path(as_json["certificate"]) == place.home / ".local/share/csp/tls/127.0.0.2.crt"
    assert stat.S_IMODE(Path(as_json["certificate"]).stat().st_mode) == 0o600


def test_a_gateway_in_a_terminal_of_its_own_is_not_restarted(place: Place) -> None:
    place.gateway()
    before = place.room()
    done = place.csp("web", "--lan", "127.0.0.2")

    assert (done.code, done.out) == (1, "")
    assert "runs in its own terminal" in done.err
    assert place.room() == before


def test_an_agent_cannot_open_the_room_to_a_network(place: Place) -> None:
    place.gateway()
    before = place.room()
    claude = place.agent("claude")
    by_token = place.csp("web", "--lan", "127.0.0.2", CSP_AUTH_TOKEN=claude.token)
    in_pane = place.csp("web", "--lan", "127.0.0.2", CSP_AGENT="claude")

    assert by_token.err == "csp: agent may not POST /page/link (it requires the room token)\n"
    assert "this pane is agent 'claude'" in in_pane.err
    assert (by_token.code, in_pane.code) == (1, 1)
    assert place.room() == before


def test_a_code_has_the_squares_of_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://192.168.1.5:8765/#link=" + "x" * 32
    squares = {" ": (0, 0), "▀": (1, 0), "▄": (0, 1), "█": (1, 1)}
    lines = web.qr_lines(url)
    rows = [[squares[char][half] for char in line] for line in lines for half in (0, 1)]
    wanted = [list(row) for row in segno.make_qr(url, error="l").matrix_iter(border=4)]

    assert rows[: len(wanted)] == wanted
    assert not any(any(row) for row in rows[len(wanted) :])
    assert max(map(len, lines)) <= 80 and len(lines) <= 30
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert web.qr_lines(url) == []


def test_a_browser_that_fails_is_told(place: Place) -> None:
    place.gateway()
    done = place.csp("web", **NO_DISPLAY | {"BROWSER": "/nowhere/browser %s"})

    assert done.code == 0
    assert done.err.startswith("not opened (no browser could be started);")


def test_json_has_everything(place: Place) -> None:
    place.gateway()
    done = place.csp("web", "--json", **NO_DISPLAY)

    assert sorted(done.json) == ["expires", "opened", "url", "urls"]
    assert done.json["urls"] == [done.json["url"]]
    assert 0 < done.json["expires"] - time.time() <= 120
    assert done.json["opened"] is False
    assert done.err == ""


def test_leave_all_ends_every_page(place: Place) -> None:
    place.gateway()
    tokens = [_enter(place.csp("web", "--no-open").out.strip()) for _ in range(2)]
    done = place.csp("web", "--leave-all")
    as_json = place.csp("web", "--leave-all", "--json")

    assert (done.code, done.out) == (0, "")
    assert done.err == "all browser sessions were signed out\n"
    assert as_json.json == {"success": True}
    for token in tokens:
        with pytest.raises(Unauthenticated):
            GatewayClient(place.room().url, token).get("/queue")


def test_a_room_that_others_reach_has_links_for_them(place: Place) -> None:
    place.gateway("--host", "0.0.0.0", "--insecure")
    done = place.csp("web", "--json", **NO_DISPLAY)
    own, *others = done.json["urls"]
    port = urlsplit(own).port

    # A machine without a network has no other address.
    assert all(urlsplit(url).port == port and urlsplit(url).hostname != "127.0.0.1" for url in others)
    assert len({url.partition("#")[2] for url in done.json["urls"]}) == len(done.json["urls"])
    for url in done.json["urls"]:
        assert GatewayClient(url.partition("/#")[0], _enter(url)).get("/queue") == {"items": []}


def test_an_agent_cannot_open_a_page(place: Place) -> None:
    place.gateway()
    claude = place.agent("claude")
    done = place.csp("web", CSP_AUTH_TOKEN=claude.token)

    assert (done.code, done.out) == (1, "")
    assert done.err == "csp: agent may not POST /page/link (it requires the room token)\n"


def test_without_a_room_there_is_no_page(place: Place) -> None:
    done = place.csp("web")

    assert (done.code, done.out, done.err) == (1, "", "csp: no room is running; start one with: csp up\n")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("10.0.0.7", "http://10.0.0.7:8765/#link=2"),
        ("fe80::1", "http://[fe80::1]:8765/#link=2"),
        ("127.0.0.1", ""),
    ],
)
def test_another_address_has_a_link_of_its_own(host: str, url: str) -> None:
    gateway = Recorded({"/page/link": {"path": "/#link=2"}})
    found = web.other_link(call_of("web", gateway=gateway), "http://127.0.0.1:8765", host)

    assert (found, len(gateway.asked)) == (url, 1 if url else 0)


def test_a_later_link_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    call = with_settings(call_of("web"), state_dir=tmp_path)
    for url in ("http://x/#link=old", 'http://x/#link="&new'):
        target = web.redirect_page(call, url)
    page = Path(url2pathname(urlsplit(target).path))

    assert 'url=http://x/#link=&quot;&amp;new">' in page.read_text()
    assert stat.S_IMODE(page.stat().st_mode) == 0o600


def test_a_browser_that_may_read_no_file_of_ours_gets_the_link_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    class Child:
        def __init__(self, argv: list[str], **how: object) -> None:
            opened.append(argv[-1])

        def wait(self, timeout: float) -> int:
            return 0

    monkeypatch.setattr(web, "process_environment", dict)
    monkeypatch.setattr("csp.cli.web.subprocess.Popen", Child)
    call = with_settings(call_of("web"), state_dir=tmp_path)
    for snaps in (tmp_path, tmp_path / "none"):
        monkeypatch.setattr(web, "_SNAPS", snaps)
        assert web._open(call, "http://x/#link=1")

    assert opened == ["http://x/#link=1", (tmp_path / "web" / "default.html").as_uri()]


@pytest.mark.parametrize(
    ("env", "platform", "why"),
    [
        ({"DISPLAY": ":0"}, "linux", ""),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", ""),
        ({}, "linux", "there is no display"),
        ({}, "darwin", ""),
        ({"DISPLAY": ":0", "SSH_CONNECTION": "a 1 b 2"}, "linux", "this is an ssh session"),
        ({"SSH_TTY": "/dev/pts/0"}, "darwin", "this is an ssh session"),
        ({"SSH_CONNECTION": "a 1 b 2", "BROWSER": "firefox"}, "linux", ""),
    ],
)
def test_a_browser_is_opened_only_where_somebody_sees_it(
    env: dict[str, str], platform: str, why: str
) -> None:
    assert why_no_browser(env, platform) == why
