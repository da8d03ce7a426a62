"""Open the room's page in a browser."""

import html
import importlib.util
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from csp.cli.arguments import JSON, switch, takes
from csp.cli.gateway import LAN, lan_address
from csp.cli.output import is_terminal, put, put_json, put_lines, talk
from csp.cli.verb_call import VerbCall
from csp.config import process_environment
from csp.errors import BadInput, Refused
from csp.fast_start.child_environment import USER, child_environment
from csp.fast_start.room_files import make_private_dir
from csp.gateway.lan_certificate import certificate_folder, certificate_of
from csp.http_client import GatewayClient, field
from csp.room_registry import RunningRoom

_HALVES: Final = {(0, 0): " ", (1, 0): "▀", (0, 1): "▄", (1, 1): "█"}
#: The width of a QR code's white border, in squares of the code.
_QUIET: Final = 4
#: Phones need dark squares on a light background, regardless of the terminal's colours.
_BLACK_ON_WHITE: Final = "\x1b[38;5;16;48;5;231m"
_PLAIN: Final = "\x1b[0m"
#: Run in a separate process, because a browser would keep our stdout open and write to it.
_OPEN: Final = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.argv[1]))"
_OPEN_S: Final = 5.0
_DISPLAYS: Final = ("DISPLAY", "WAYLAND_DISPLAY")
#: Browsers packaged as snaps cannot read our files.
_SNAPS: Final = Path("/snap/bin")


@takes(
    switch("--no-open", "print the link without opening a browser"),
    LAN,
    switch("--leave-all", "sign out all pages instead"),
    JSON,
    examples=("csp web --no-open", "csp web --lan"),
)
def web(call: VerbCall) -> int:
    """Print a one-time link to the page, and open it in a browser if there is one."""
    if call.args.leave_all:
        call.gateway.post("/page/leave", {"all": True})
        return call.tell({"success": True}, "all browser sessions were signed out")
    if call.args.lan is not None:
        return lan_link(call, lan_address(call.args.lan))
    link = call.gateway.post("/page/link", {})
    base = call.gateway.url
    # Each link admits one page, so each address gets its own link.
    others = [other_link(call, base, str(host)) for host in field(link, "hosts", list)]
    urls = [base + field(link, "path", str), *(url for url in others if url)]
    why_not = "as requested" if call.args.no_open else why_no_browser(process_environment())
    is_opened = not why_not and _open(call, urls[0])
    if call.is_json:
        expires = field(link, "expires", float)
        put_json({"url": urls[0], "urls": urls, "expires": expires, "opened": is_opened})
        return 0
    put_lines(urls)
    if is_opened:
        talk("opened in your browser; the link works once, within two minutes")
    else:
        why = why_not or "no browser could be started"
        talk(f"not opened ({why}); open the link yourself; it works once, within two minutes")
    if len(urls) > 1:
        talk("the other links are for other machines, such as a phone; each works once")
    return 0


def lan_link(call: VerbCall, address: str) -> int:
    """Print a one-time link, with its QR code, for another machine on the network, such as a phone."""
    if call.settings.agent:
        raise Refused(f"this pane is agent {call.settings.agent!r}", "use another terminal for this")
    # A token that may not create a link may not open the room either; a restart invalidates this link.
    call.gateway.post("/page/link", {})
    room = lan_room(call, address)
    certificate = certificate_of(certificate_folder(process_environment()), address)
    link = GatewayClient(room.url, room.token).post("/page/link", {})
    url = room.lan + field(link, "path", str)
    if call.is_json:
        files = {"certificate": str(certificate.cert), "fingerprint": certificate.fingerprint}
        put_json({"url": url, "expires": field(link, "expires", float), **files})
        return 0
    put(url)
    for line in qr_lines(url):
        print(f"{_BLACK_ON_WHITE}{line}{_PLAIN}" if is_terminal(sys.stderr) else line, file=sys.stderr)
    talk("open it on the other machine; it works once, within two minutes")
    talk("the browser warns once, because the certificate is self-signed; its SHA-256 fingerprint is")
    for half in (certificate.fingerprint[:47], certificate.fingerprint[48:]):
        talk(f"  {half}")
    talk("the room is reachable from this network until: csp down")
    return 0


def lan_room(call: VerbCall, address: str) -> RunningRoom:
    """Make this call's room reachable at an address of this machine, and return the room."""
    from csp.cli.up import at_work
    from csp.panes.start_gateway import open_to_lan, running_room

    settings, name = call.settings, call.address.room
    with at_work(settings.state_dir, name) as progress:
        room = running_room(settings.state_dir, name)
        if room is None:
            raise BadInput("csp web --lan needs a room of this machine", "unset CSP_GATEWAY_URL")
        return open_to_lan(settings, room, address, process_environment(), progress.show)


def qr_lines(url: str) -> list[str]:
    """Return the lines of a URL's QR code, two rows per line; none if segno is not installed."""
    if importlib.util.find_spec("segno") is None:
        return []
    import segno

    rows = [list(row) for row in segno.make_qr(url, error="l").matrix_iter(border=_QUIET)]
    rows += [[0] * len(rows[0])] if len(rows) % 2 else []
    pairs = zip(rows[::2], rows[1::2], strict=True)
    return ["".join(_HALVES[upper, lower] for upper, lower in zip(*pair, strict=True)) for pair in pairs]


def other_link(call: VerbCall, base: str, host: str) -> str:
    """Return a link for another machine, or an empty string if `base` works there too."""
    parts = urlsplit(base)
    if parts.hostname == host:
        return ""
    name = f"[{host}]" if ":" in host else host
    port = f":{parts.port}" if parts.port else ""
    path = field(call.gateway.post("/page/link", {}), "path", str)
    return f"{parts.scheme}://{name}{port}{parts.path}{path}"


def why_no_browser(env: Mapping[str, str], platform: str = sys.platform) -> str:
    """Return why no browser can be opened here, or an empty string."""
    if env.get("BROWSER"):
        return ""
    if env.get("SSH_CONNECTION") or env.get("SSH_TTY"):
        return "this is an ssh session"
    if platform != "darwin" and not any(env.get(name) for name in _DISPLAYS):
        return "there is no display"
    return ""


def _open(call: VerbCall, url: str) -> bool:
    """Open a link in the user's browser; return whether one was started."""
    is_chosen = bool(process_environment().get("BROWSER"))
    target = url if is_chosen or _SNAPS.is_dir() else redirect_page(call, url)
    child = subprocess.Popen(
        # -P, because a module in the current directory must not shadow one of Python's.
        [sys.executable, "-P", "-c", _OPEN, target],
        env=child_environment(USER, process_environment()),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return child.wait(_OPEN_S) == 0
    except subprocess.TimeoutExpired:
        # Some browsers stay in the foreground of the process that starts them.
        return True


def redirect_page(call: VerbCall, url: str) -> str:
    """Return the URL of a private file that redirects to `url`, because anyone can read a command line."""
    folder = call.settings.state_dir / "web"
    make_private_dir(folder)
    path = folder / f"{call.address.room or 'room'}.html"
    path.unlink(missing_ok=True)
    path.touch(0o600, exist_ok=False)
    safe = html.escape(url, quote=True)
    path.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={safe}">', "utf-8")
    return path.as_uri()
