"""The files of the page without a gateway, for tests that call its modules one by one."""

import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from csp.gateway import page_routes
from csp.gateway.page_routes import with_providers

HERE: Final = Path(__file__).resolve().parent
FILES: Final = HERE.parent.parent / "csp" / "web" / "page"
# Nothing may load and no string may become markup: what the page itself is served with, or stricter.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
EMPTY: Final = b"<!doctype html><html lang=en><title>text</title><main></main>"
START: Final = b'<script type="module" src="page/main.js"></script>'


class _Files(http.server.SimpleHTTPRequestHandler):
    """Serves the page's modules, what looks at them, an empty document, the page with nothing begun."""

    protocol_version = "HTTP/1.1"
    is_cached = False

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        if name == "rendering.js":
            self._answer((HERE / name).read_bytes(), "text/javascript")
        elif name.endswith(".js"):
            self._answer((FILES / name).read_bytes(), "text/javascript")
        elif name == "parts":
            text = with_providers((FILES / "index.html").read_bytes().replace(START, b""))
            self._answer(text, "text/html; charset=utf-8", page_routes._POLICY)
        elif name.endswith((".css", ".svg")):
            self._answer(b"", "text/css" if name.endswith(".css") else "image/svg+xml")
        else:
            self._answer(EMPTY, "text/html; charset=utf-8")

    def _answer(self, body: bytes, kind: str, policy: str = POLICY) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Security-Policy", policy)
        if self.is_cached:
            self.send_header("Cache-Control", "max-age=86400")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing about requests."""


class _CachedFiles(_Files):
    """Lets a browser keep the files."""

    is_cached = True


@contextmanager
def served_files(*, is_cached: bool = False) -> Iterator[str]:
    """Serve the files; yield where.

    With `is_cached`, a browser may keep them from one document to the next. That saves a third of a test
    that loads a few modules.
    """
    handler = _CachedFiles if is_cached else _Files
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=functools.partial(server.serve_forever, poll_interval=0.05))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()
