"""A room that other machines of the network reach: TLS for them, plain loopback for this machine."""

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from csp.config import GatewayOptions, Settings
from csp.errors import BadInput, Broken
from csp.gateway.lan_certificate import LanCertificate, certificate_folder, certificate_of
from csp.gateway.lan_listener import lan_url, open_lan
from csp.gateway.server import reach_words, run
from tests.gateway.processes import Process, wait_for_room
from tests.rooms import free_port

#: Another address of this machine, which stands for that of its network.
ADDRESS = "127.0.0.2"


class Reached(NamedTuple):
    """A room with its address for others."""

    room: Process
    url: str
    certificate: LanCertificate

    def curl(self, path: str, *words: str, trusts: bool = True) -> "subprocess.CompletedProcess[str]":
        trust = ["--cacert", str(self.certificate.cert)] if trusts else []
        command = [
            "curl",
            "-sS",
            "--max-time",
            "120",
            "-w",
            "\n%{http_code}",
            *trust,
            *words,
            self.url + path,
        ]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def status(self, path: str, *headers: str) -> int:
        words = [word for header in headers for word in ("-H", header)]
        return int(self.curl(path, *words).stdout.rpartition("\n")[2])


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reached]:
    with Process(tmp_path_factory.mktemp("lan") / "room", "--lan", ADDRESS) as room:
        certificate = certificate_of(certificate_folder(room.env), ADDRESS)
        yield Reached(room, wait_for_room(room.state_dir).lan, certificate)


def test_others_use_tls_and_this_machine_needs_no_certificate(reached: Reached) -> None:
    token = f"X-Auth-Token: {reached.room.token}"

    assert reached.url == f"https://{ADDRESS}:{reached.room.port}"
    assert json.loads(reached.curl("/agents", "-H", token).stdout.partition("\n")[0]) == []
    assert reached.room.gateway.get("/agents") == []
    assert wait_for_room(reached.room.state_dir).url == f"http://127.0.0.1:{reached.room.port}"


def test_nobody_is_answered_without_tls_or_trust(reached: Reached) -> None:
    untrusting = reached.curl("/health", trusts=False)
    plain = reached._replace(url=reached.url.replace("https:", "http:")).curl("/health")

    assert untrusting.returncode == 60, untrusting.stderr
    assert plain.returncode != 0 and "200" not in plain.stdout


def test_every_guard_of_the_page_holds_there_too(reached: Reached) -> None:
    token = f"X-Auth-Token: {reached.room.token}"
    own = f"Origin: {reached.url}"

    assert reached.status("/agents", token, own) == 200
    assert reached.status("/agents") == 401
    assert reached.status("/agents", token, "Host: evil.example") == 403
    assert reached.status("/agents", token, "Origin: https://evil.example") == 403
    assert reached.status("/agents", token, own.replace("https:", "http:")) == 403
    assert reached.status("/agents", token, "Sec-Fetch-Site: cross-site") == 403


def test_a_link_lets_one_page_in_once(reached: Reached) -> None:
    code = reached.room.gateway.post("/page/link", {})["code"]
    body = ("-H", "Content-Type: application/json", "-d", json.dumps({"code": code}))
    first, second = (reached.curl("/page/enter", *body).stdout.rpartition("\n")[2] for _ in range(2))

    assert (first, second) == ("200", "401")


# --- how it is opened ------------------------------------------------------------------------------


def test_a_port_that_is_taken_gives_way_to_a_free_one(tmp_path: Path) -> None:
    port = free_port()
    first = open_lan(ADDRESS, port, tmp_path)
    second = open_lan(ADDRESS, port, tmp_path)
    ports = [opened.listener.getsockname()[1] for opened in (first, second)]
    for opened in (first, second):
        opened.listener.close()

    assert ports[0] == port != ports[1]
    assert second.url == f"https://{ADDRESS}:{ports[1]}"
    assert lan_url("fe80::1", 7) == "https://[fe80::1]:7"


def test_an_address_of_another_machine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Broken) as caught:
        open_lan("192.0.2.1", 0, tmp_path)

    assert caught.value.message.startswith("cannot listen on 192.0.2.1: ")
    assert caught.value.hint == "name another address of this machine: --lan ADDRESS"


@pytest.mark.parametrize(
    ("host", "insecure"), [("127.0.0.1", True), ("0.0.0.0", True), ("192.168.1.5", False)]
)
def test_the_two_ways_out_of_loopback_are_not_mixed(tmp_path: Path, host: str, insecure: bool) -> None:
    options = GatewayOptions(
        settings=Settings(host=host, port=0), insecure=insecure, lan=ADDRESS, dir=tmp_path
    )
    with pytest.raises(BadInput):
        run(options)


def test_a_restart_is_told_how_the_room_is_reached(tmp_path: Path) -> None:
    options = GatewayOptions(settings=Settings(), dir=tmp_path)
    cert, key = tmp_path / "c.pem", tmp_path / "k.pem"

    assert reach_words(options) == ""
    assert reach_words(GatewayOptions(settings=Settings(), dir=tmp_path, lan=ADDRESS)) == f"--lan {ADDRESS}"
    files = GatewayOptions(settings=Settings(), dir=tmp_path, tls_cert=cert, tls_key=key)
    assert reach_words(files) == f"--tls-cert {cert} --tls-key {key}"
    assert reach_words(GatewayOptions(settings=Settings(), dir=tmp_path, insecure=True)) == "--insecure"


def test_a_socket_is_let_go_where_it_cannot_be_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[socket.socket] = []

    class Noted(socket.socket):
        def __init__(self, *args: int) -> None:
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr("csp.gateway.lan_listener.socket.socket", Noted)
    with pytest.raises(Broken):
        open_lan("192.0.2.1", 0, tmp_path)

    assert [one.fileno() for one in made] == [-1, -1]
