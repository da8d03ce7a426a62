"""The files that csp cluster prints: started with the real server, checked with systemd, parsed as YAML."""

import asyncio
import configparser
import json
import shutil
import socket
import stat
import subprocess
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from csp.cli import main
from csp.cli.parser import parse
from csp.cluster.bus import Bus
from csp.cluster.config_files import MONITOR_ABOVE, ROUTES_ABOVE, read_hosts
from csp.cluster.names import shard_of
from csp.cluster.node import room_key
from csp.cluster.servers import read_servers
from csp.cluster.setup import open_stream
from csp.cluster.stream_log import StreamLog
from csp.config import Settings
from csp.errors import BadInput, Broken
from csp.gateway.auth import TokenStore
from tests.cluster.certificates import make_certificate
from tests.cluster.nats_servers import SERVER, ConfiguredServer
from tests.journal.log_stores import START, batch_of, replayed
from tests.journal.making import lines_to
from tests.rooms import free_port
from tests.waiting import wait_until

KEY: Final = "UD2CBYPR3SPM2NPWJZYKDL3Q6KEJKYA7XGFRYQ62MAVRZOKJSPVYZ55F"
HOSTS: Final = "a.example,b.example,c.example"


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return what a form of csp cluster prints."""
    code = main(["cluster", *words])
    out, err = capsys.readouterr()
    assert (code, err) == (0, ""), err
    return out


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the error of a form that is not accepted."""
    code = main(["cluster", *words])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    return err


def free_ports() -> int:
    """Return a port whose companions are free as well."""
    while not all(is_free((port := free_port()) + above) for above in (ROUTES_ABOVE, MONITOR_ABOVE)):
        pass
    return port


def is_free(port: int) -> bool:
    """Return whether nobody listens on a port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            return False
    return True


def state_of(port: int) -> dict[str, Any]:
    """Return what a server tells about itself."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port + MONITOR_ABOVE}/varz", timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


# --- nats.conf -----------------------------------------------------------------------------------


@pytest.fixture
def made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[tuple[list[int], Settings]]:
    """Three servers as printed, which run on this machine."""
    certificate = make_certificate(tmp_path / "tls")
    main(["cluster", "key", str(tmp_path / "gateway.nk")])
    key = capsys.readouterr().out.strip()
    ports = [free_ports() for _ in range(3)]
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
    with ExitStack() as servers:
        for number, port in enumerate(ports, 1):
            store = ["--store", str(tmp_path / f"n{number}"), "--folder", str(tmp_path / "tls")]
            words = ["config", "nats", "--hosts", hosts, "--number", str(number), "--key", key, *store]
            path = tmp_path / f"nats{number}.conf"
            path.write_text(printed(capsys, *words))
            servers.enter_context(ConfiguredServer(path, port))
        yield ports, Settings(nats_ca=certificate.ca, nats_creds=tmp_path / "gateway.nk")


async def test_three_printed_configurations_hold_a_room(made: tuple[list[int], Settings]) -> None:
    ports, settings = made
    servers = read_servers(",".join(f"tls://127.0.0.1:{port}" for port in ports), settings)
    bus = await Bus.open(servers)

    async def opens() -> bool:
        try:
            await open_stream(bus, shard_of("review"), 3)
        except Broken:
            # The servers have not found each other yet.
            return False
        return True

    asked: Callable[[], bool | Awaitable[bool]] = opens
    await wait_until(asked)
    log = StreamLog(bus, "review")
    await log.append(batch_of(lines_to(5)), START)
    found, largest = await replayed(log), bus.max_payload
    await bus.close()
    state = await asyncio.to_thread(state_of, ports[0])

    assert (found, largest) == (lines_to(5), 8 << 20)
    assert state["jetstream"]["config"]["sync_always"] is True
    assert sorted(state["cluster"]["urls"]) == sorted(f"127.0.0.1:{port + ROUTES_ABOVE}" for port in ports)


def test_the_server_accepts_the_printed_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_certificate(tmp_path)
    for hosts in (HOSTS, "a.example"):
        path = tmp_path / "nats.conf"
        where = ["--folder", str(tmp_path), "--store", str(tmp_path / "store")]
        path.write_text(printed(capsys, "config", "nats", "--hosts", hosts, "--key", KEY, *where))
        assert SERVER is not None
        tried = subprocess.run([SERVER, "-t", "-c", str(path)], capture_output=True, text=True, check=False)

        assert tried.returncode == 0, tried.stderr
        assert ("cluster {" in path.read_text()) == (hosts == HOSTS)


# --- systemd and compose -------------------------------------------------------------------------


def test_systemd_accepts_the_printed_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["config", "systemd", "--hosts", HOSTS, "--room", "review", "--gateway-port", "443"]
    path = tmp_path / "csp-review.service"
    path.write_text(printed(capsys, *words))
    # Not every system has systemd.
    if tool := shutil.which("systemd-analyze"):
        tried = subprocess.run(
            [tool, "verify", "--man=no", str(path)], capture_output=True, text=True, check=False
        )
        assert (tried.returncode, tried.stderr) == (0, "")
    unit = configparser.RawConfigParser(strict=False, comment_prefixes="#", delimiters="=")
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # names are written with capitals
    unit.read_string(path.read_text().replace("\\\n", " "))

    assert unit.sections() == ["Unit", "Service", "Install"]
    words = unit["Service"]["ExecStart"].split()
    assert Path(words[0]).is_file()
    assert words[1:6] == [
        *("gateway", "--room", "review"),
        *("--journal", "tls://a.example:4222,tls://b.example:4222,tls://c.example:4222"),
    ]
    assert words[words.index("--port") + 1] == "443"
    verb, args = parse(words[1:])
    assert (verb.name, args.secret_file, args.port) == ("gateway", "%d/secret", "443")


def test_the_compose_file_has_every_server_and_a_gateway_for_each(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["config", "compose", "--hosts", "n1,n2,n3", "--room", "review", "--gateway-port", "9000"]
    found = yaml.safe_load(printed(capsys, *words))
    services = found["services"]

    assert services.keys() == {f"{kind}{number}" for kind in ("nats", "gateway") for number in (1, 2, 3)}
    assert [services[f"gateway{number}"]["ports"] for number in (1, 2, 3)] == [
        ["9000:8765"],
        ["9001:8765"],
        ["9002:8765"],
    ]
    command = services["gateway2"]["command"]
    assert command[:2] == ["sh", "-c"]
    _, args = parse(command[2].partition("exec csp ")[2].split())
    assert args.journal == "tls://n1:4222,tls://n2:4222,tls://n3:4222"
    assert {source.split(":")[0] for source in services["nats2"]["volumes"]} == {
        *("./nats2.conf", "./tls/ca.pem", "./tls/cert.pem", "./tls/key.pem", "nats2")
    }
    volumes = {source.split(":")[0] for service in services.values() for source in service["volumes"]}
    assert {name for name in volumes if not name.startswith(".")} == found["volumes"].keys()
    assert set(services["gateway1"]["secrets"]) == found["secrets"].keys()


# --- keys and secrets ----------------------------------------------------------------------------


def test_keys_and_secrets_are_for_their_user_alone_and_never_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for form in ("key", "secret"):
        path = tmp_path / form
        assert main(["cluster", form, str(path)]) == 0
        text = path.read_text()
        capsys.readouterr()

        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert len(text.strip()) > 40 and text.strip() not in capsys.readouterr().out
        assert main(["cluster", form, str(path)]) == 1
        assert "exists already" in capsys.readouterr().err
        assert path.read_text() == text


def test_the_token_of_a_room_is_that_of_its_gateways(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "secret"
    path.write_text("0123456789abcdef\n")
    words = ["cluster", "token", "review", "--secret-file", str(path)]
    assert main(words) == 0

    assert capsys.readouterr().out.strip() == TokenStore(room_key(b"0123456789abcdef", "review")).room_token


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("", "expected one of nats, systemd, compose, got ''"),
        ("config nginx", "expected one of nats, systemd, compose, got 'nginx'"),
        ("config nats", "expected --key with the gateways' public key"),
        ("config nats --key SUAB", "expected the public key of a user"),
        (f"config nats --key {KEY[:-1]}A", "expected the public key of a user"),
        (f"config nats --key {KEY} --number 4", "there are 3 hosts, got 4"),
        (f"config nats --key {KEY} --store relative", "expected an absolute path without spaces"),
        (f"config nats --key {KEY} --gateway-port 1", "config nats does not accept --gateway-port"),
        ("config systemd --number 2", "config systemd does not accept --number"),
        ("config compose --folder /etc", "config compose does not accept --folder"),
        ("key", "expected the file to write"),
        ("token", "expected the name of a room"),
        ("token a", "need a common secret"),
        ("secret a b", "does not accept 'b'"),
        ("secret a --hosts b", "does not accept --hosts"),
    ],
)
def test_what_makes_no_sense_is_refused(capsys: pytest.CaptureFixture[str], words: str, problem: str) -> None:
    assert problem in refused(capsys, *words.split())


@pytest.mark.parametrize("text", ["", "a,b", "a,a,b", "a:x", "a:0", "a/b", "me@a", "a:65000", 'a"b', "a b"])
def test_hosts_that_cannot_be_hosts_are_refused(text: str) -> None:
    with pytest.raises(BadInput):
        read_hosts(text)
