"""Run a gateway: bind, announce, serve and shut down in order, and restart it after a crash.

The supervisor owns the listening socket, so we keep the port and callers wait during a restart.
"""

import asyncio
import contextlib
import errno
import gc
import logging
import os
import resource
import shlex
import signal
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from csp.cluster.node import Node, read_secret
from csp.cluster.servers import read_servers
from csp.config import GatewayOptions, Settings, process_environment
from csp.errors import BadInput, Broken, CspError, Refused, StorageFailed
from csp.fast_start import failure_report
from csp.gateway import journal_maintenance
from csp.gateway.acceptor import Acceptor, HttpServer
from csp.gateway.connections import new_event_loop
from csp.gateway.gateway import Gateway
from csp.gateway.http_server import make_runner
from csp.gateway.lan_certificate import certificate_folder
from csp.gateway.lan_listener import LanListener, open_lan
from csp.gateway.own_address import is_loopback
from csp.gateway.sleep_gauge import passed_s
from csp.room_registry import RoomFile, RunningRoom, remove_room, write_room

#: A larger change in the offset from the machine's clock is logged.
JUMP_S: Final = 2.0
log = logging.getLogger(__name__)

PORT_TRIES: Final = 100
#: The pause between two attempts to bind a chosen port; a port in use is reported after two seconds.
PORT_PAUSE_S: Final = 0.02
BACKLOG: Final = 8192
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_WAITED_FOR: Final = (*_SIGNALS, signal.SIGCHLD)
MAX_RESTARTS: Final = 5
WINDOW_S: Final = 60.0
STORAGE_FAILED: Final = 74
OnReady = Callable[[], None]
Serve = Callable[[OnReady], int]


class RoomWork(Protocol):
    """The work of a process with its listener, until `stop` is set; see `serve`."""

    async def __call__(
        self,
        options: GatewayOptions,
        listener: socket.socket,
        stop: asyncio.Event,
        *,
        tls: ssl.SSLContext | None = None,
        on_ready: OnReady = lambda: None,
        supervisor: int | None = None,
        lan: LanListener | None = None,
    ) -> None: ...


class SteadyClock:
    """The time of day at the start of the gateway plus the time elapsed since then.

    Turn and message deadlines are times of day, so that they outlive the gateway. If a person or a time
    server sets the machine's clock, no turn may time out early or get an extra hour, so a jump is logged and
    ignored.
    """

    def __init__(self, wall: Callable[[], float] = time.time, passed: Callable[[], float] = passed_s) -> None:
        self._wall = wall
        self._passed = passed
        self._began = wall() - passed()
        #: The machine's clock minus this one.
        self.ahead_s = 0.0

    def __call__(self) -> float:
        now = self._began + self._passed()
        ahead_s = self._wall() - now
        if abs(ahead_s - self.ahead_s) > JUMP_S:
            log.warning("clock was set", extra={"by_s": round(ahead_s - self.ahead_s, 1), "followed": False})
            self.ahead_s = ahead_s
        return now


def run(options: GatewayOptions, work: RoomWork | None = None) -> int:
    """Serve the room, or do other work, until a stop signal arrives; return the exit code."""
    tls = None
    if options.tls_cert is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            tls.load_cert_chain(options.tls_cert, options.tls_key)
        except (OSError, ssl.SSLError) as exc:
            raise BadInput(f"cannot use the certificate {str(options.tls_cert)!r}: {exc}") from exc
    host = options.settings.host
    if tls is None and not options.insecure and not is_loopback(host):
        raise BadInput(
            f"host {host!r} can be reached from outside, and tokens would be sent unencrypted",
            "add --tls-cert and --tls-key, or --insecure",
        )
    if options.lan and (tls is not None or options.insecure or not is_loopback(host)):
        problem = "--lan opens a second address with its own certificate"
        raise BadInput(problem, "omit --host, --tls-cert, --tls-key and --insecure")
    raise_file_limit()
    logging.getLogger("aiohttp.server").addFilter(is_our_failure)
    listener = bind(options.settings)
    lan: LanListener | None = None
    serve_forever = _serve_forever if work is None else partial(_serve_forever, work=work)
    try:
        if options.lan:
            port = listener.getsockname()[1]
            lan = open_lan(options.lan, port, certificate_folder(process_environment()))
        if options.supervise:
            return supervise(lambda ready: serve_forever(options, listener, tls, ready, os.getppid(), lan))
        return serve_forever(options, listener, tls, lambda: None, None, lan)
    finally:
        listener.close()
        if lan is not None:
            lan.listener.close()


def reach_words(options: GatewayOptions) -> str:
    """Return the command-line options that define how the gateway can be reached."""
    words = ["--lan", options.lan] if options.lan else []
    words += (
        ["--tls-cert", str(options.tls_cert), "--tls-key", str(options.tls_key)] if options.tls_cert else []
    )
    words += ["--insecure"] if options.insecure else []
    return shlex.join(words)


def is_our_failure(record: logging.LogRecord) -> bool:
    """Keep malformed requests out of the log, because aiohttp quotes their tokens and text."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError | web.RequestPayloadError)


def _serve_forever(
    options: GatewayOptions,
    listener: socket.socket,
    tls: ssl.SSLContext | None,
    on_ready: OnReady,
    supervisor: int | None,
    lan: LanListener | None,
    work: RoomWork | None = None,
) -> int:
    async def serve_until_signalled() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await (work or serve)(
            options, listener, stop, tls=tls, on_ready=on_ready, supervisor=supervisor, lan=lan
        )

    # Objects loaded so far are never freed; scanning them in every garbage collection would delay the room.
    gc.freeze()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(serve_until_signalled())
    return 0


async def serve(
    options: GatewayOptions,
    listener: socket.socket,
    stop: asyncio.Event,
    *,
    tls: ssl.SSLContext | None = None,
    on_ready: OnReady = lambda: None,
    supervisor: int | None = None,
    lan: LanListener | None = None,
) -> None:
    """Serve the room on `listener` until `stop` is set; raise the journal's error if it breaks."""
    node = await open_node(options, options.settings.room)
    try:
        await _serve_room(options, listener, stop, tls, on_ready, supervisor, lan, node)
    finally:
        if node is not None:
            await node.close()


async def open_node(options: GatewayOptions, room: str) -> Node | None:
    """Join the cluster of the settings, with one room or with all; None if there is no cluster."""
    settings = options.settings
    if not settings.journal:
        return None
    servers = read_servers(settings.journal, settings, is_insecure=options.insecure)
    return await Node.open(servers, read_secret(settings.secret_file), settings.public_url, room)


async def _serve_room(
    options: GatewayOptions,
    listener: socket.socket,
    stop: asyncio.Event,
    tls: ssl.SSLContext | None,
    on_ready: OnReady,
    supervisor: int | None,
    lan: LanListener | None,
    node: Node | None,
) -> None:
    settings = options.settings
    cluster = None if node is None else await node.room(settings.room)
    gateway = Gateway(settings, settings.history_dir / settings.room, SteadyClock(), cluster)
    runner = make_runner(gateway)
    announcement: RoomFile | None = None
    acceptors: list[Acceptor] = []
    try:
        await gateway.join_cluster()
        if cluster is None:
            await journal_maintenance.finish_rewrites(gateway)
            await journal_maintenance.report_mending(gateway)
        await runner.setup()
        assert isinstance(runner.server, HttpServer)
        acceptors.append(Acceptor(runner.server, listener, tls))
        if lan is not None:
            acceptors.append(Acceptor(runner.server, lan.listener, lan.tls))
        url = url_of(settings.host, listener.getsockname()[1], is_tls=tls is not None)
        running = RunningRoom(
            room=settings.room,
            url=url,
            token=gateway.tokens.room_token,
            pid=os.getpid(),
            supervisor=supervisor,
            dir=options.dir,
            history=gateway.folder,
            started=gateway.started,
            project=settings.project.identity if settings.project else str(options.dir),
            lan=lan.url if lan is not None else "",
            options=reach_words(options),
        )
        announcement = announce(settings, running)
        gateway.run_worker.dir = options.dir
        gateway.hosts_runs |= options.hosts_runs
        start_background(gateway)
        log.info("gateway ready", extra={"room": settings.room, "url": url, "seq": gateway.writer.room.seq})
        on_ready()
        gateway.writer.broken.add_done_callback(lambda _: stop.set())
        await stop.wait()
        if gateway.writer.broken.done():
            # Raise the journal's error.
            gateway.writer.broken.result()
    finally:
        for acceptor in acceptors:
            acceptor.close()
        await shut_down(gateway, runner, announcement)


def announce(settings: Settings, running: RunningRoom) -> RoomFile | None:
    """Announce the room to local commands; in a cluster another gateway of this machine may have done so."""
    try:
        return write_room(settings.state_dir, running)
    except Refused:
        if not settings.journal:
            raise
        log.info("room is announced by another gateway", extra={"room": running.room})
        return None


def start_background(gateway: Gateway) -> None:
    gateway.set_alarm()
    gateway.spawn(gateway.answer_queries())
    gateway.spawn(gateway.watch_presence())
    if gateway.cluster is not None:
        gateway.spawn(gateway.watch_log())
    if gateway.hosts_runs:
        gateway.spawn(gateway.run_worker.work())
    for worker in (gateway.board_summaries, gateway.remote_boards):
        gateway.spawn(worker.work())
    gateway.spawn(journal_maintenance.index_when_quiet(gateway))
    gateway.spawn(journal_maintenance.index_notes(gateway))
    gateway.spawn(journal_maintenance.scrub_journal(gateway))


async def shut_down(gateway: Gateway, runner: web.ServerRunner, announcement: RoomFile | None) -> None:
    """Close callers, connections, the journal and the announcement in this order, so that nothing is lost."""
    gateway.broadcast.close()
    for connection in list(gateway.sockets):
        connection.drop(1001, "the gateway is shutting down")
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(runner.cleanup(), 5)
    await gateway.close()
    if announcement is not None:
        remove_room(announcement)
    log.info("gateway stopped", extra={"seq": gateway.writer.room.seq})


# --- the socket ----------------------------------------------------------------------------------


def bind(settings: Settings) -> socket.socket:
    """Return a listening socket; if the default port is taken, use the next free one.

    A process that a killed gateway was just starting may occupy the chosen port for a moment.
    """
    is_chosen = settings.is_set("port")
    for number in range(PORT_TRIES):
        try:
            return _listen(settings.host, settings.port if is_chosen else settings.port + number)
        except OSError as exc:
            error = exc
        if is_chosen and error.errno != errno.EADDRINUSE:
            break
        if is_chosen:
            time.sleep(PORT_PAUSE_S)
    raise Broken(
        f"cannot listen on {settings.host} port {settings.port}: {(error.strerror or str(error)).lower()}",
        "choose another one with CSP_PORT or csp gateway --port; 0 means any free port",
    ) from error


def _listen(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        # Callers that connect before the server is up, or during a restart, wait instead of failing.
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def url_of(host: str, port: int, *, is_tls: bool) -> str:
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(host, host)
    if ":" in name and not name.startswith("["):
        name = f"[{name}]"
    return f"{'https' if is_tls else 'http'}://{name}:{port}"


def raise_file_limit() -> None:
    """Raise the limit on open files for a thousand watchers; on many systems it starts at 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65536 if hard == resource.RLIM_INFINITY else min(hard, 65536)
    if soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


# --- the supervisor ------------------------------------------------------------------------------


def supervise(serve: Serve, what: str = "gateway") -> int:
    """Run `serve` in a child; restart it after a crash, at most 5 times a minute."""
    guard = _Guard()
    restarts: deque[float] = deque(maxlen=MAX_RESTARTS)
    while True:
        was_ready, code = guard.run_child(serve)
        if code == 0 or guard.is_stopping:
            return 0
        if code == STORAGE_FAILED:
            # A restart does not repair a failed disk.
            return 1
        if not was_ready and code > 0:
            return code
        now = time.monotonic()
        if len(restarts) == MAX_RESTARTS and now - restarts[0] < WINDOW_S:
            log.error(f"{what} keeps dying", extra={"restarts": MAX_RESTARTS, "within_s": WINDOW_S})
            return 1
        restarts.append(now)
        log.warning(f"{what} died and is being restarted", extra={"exit_code": code})


class _Guard:
    """Runs the current child and records whether a signal has requested a stop.

    A signal that arrives just before a blocking call would be noticed only after that call, because Python
    runs handlers between bytecode instructions. So signals are blocked while there is a child, and
    `sigwait` waits for them and for the child's death together.
    """

    def __init__(self) -> None:
        self.is_stopping = False

        def stop(number: int, frame: object) -> None:
            self.is_stopping = True

        for number in _SIGNALS:
            signal.signal(number, stop)
        # Some systems discard a signal without a handler even while sigwait waits for it.
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run_child(self, serve: Serve) -> tuple[bool, int]:
        """Forward signals to a child until it ends; return whether it was ever ready, and its exit code."""
        ready_out, ready_in = os.pipe()
        # Blocked before the fork: the child would lose a signal that arrives before it has handlers.
        signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED_FOR)
        child = os.fork()
        if child == 0:
            os.close(ready_out)
            os._exit(_be_child(serve, ready_in))
        os.close(ready_in)
        try:
            if self.is_stopping:
                os.kill(child, signal.SIGTERM)
            ended, status = 0, 0
            while not ended:
                if signal.sigwait(_WAITED_FOR) in _SIGNALS:
                    self.is_stopping = True
                    os.kill(child, signal.SIGTERM)
                ended, status = os.waitpid(child, os.WNOHANG)
            os.set_blocking(ready_out, False)
            with contextlib.suppress(BlockingIOError):
                return os.read(ready_out, 1) == b"1", os.waitstatus_to_exitcode(status)
            return False, os.waitstatus_to_exitcode(status)
        finally:
            os.close(ready_out)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _WAITED_FOR)


def _be_child(serve: Serve, ready_in: int) -> int:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _WAITED_FOR)

    def on_ready() -> None:
        os.write(ready_in, b"1")
        os.close(ready_in)

    try:
        return serve(on_ready)
    except CspError as error:
        log.error("gateway failed", extra={"problem": error.message, "hint": error.hint})
        failure_report.report(error.message, error.hint)
        if isinstance(error, StorageFailed):
            return STORAGE_FAILED
    except KeyboardInterrupt:
        return 0
    except BaseException:
        log.exception("gateway crashed")
    return 1
