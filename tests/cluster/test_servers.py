"""The servers that an option names: what is accepted, and with what they are connected to."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from csp.cluster.bus import Bus
from csp.cluster.servers import NatsServers, read_servers
from csp.config import Settings
from csp.errors import BadInput, Broken, LogLost, Refused
from tests.cluster.certificates import Certificate, make_certificate
from tests.cluster.nats_servers import NatsServer
from tests.cluster.nats_users import Operator, new_user
from tests.cluster.old_server import VERSION, old_server
from tests.stream_server import StreamServer

PLAIN = Settings()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("tls"))


async def connected(servers: NatsServers) -> bool:
    bus = await Bus.open(servers)
    is_connected = bus.is_connected and "error" not in await bus.ask("INFO", {}, timeout_s=30)
    await bus.close()
    return is_connected


# --- what is accepted ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("nats://127.0.0.1:4223", ("nats://127.0.0.1:4223",)),
        ("nats://localhost, nats://[::1]:1", ("nats://localhost:4222", "nats://[::1]:1")),
        ("tls://a.example,tls://b.example:5", ("tls://a.example:4222", "tls://b.example:5")),
    ],
)
def test_addresses_are_read_with_their_ports(text: str, urls: tuple[str, ...]) -> None:
    servers = read_servers(text, PLAIN)

    assert (servers.urls, str(servers)) == (urls, ",".join(urls))


@pytest.mark.parametrize(
    "text", ["", "a:4222", "http://a", "nats://", "nats://a:0", "nats://a:x", "tls://a/b"]
)
def test_what_is_not_an_address_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="expected the address of a NATS server, got "):
        read_servers(text, PLAIN)


def test_a_password_does_not_belong_into_an_address() -> None:
    with pytest.raises(BadInput, match="must not contain a user") as refused:
        read_servers("tls://me:secret@a.example", PLAIN)

    assert "secret" not in refused.value.message + refused.value.hint


def test_addresses_with_and_without_encryption_are_not_mixed() -> None:
    with pytest.raises(BadInput, match="all with tls://"):
        read_servers("tls://a.example,nats://127.0.0.1", PLAIN)


def test_another_machine_is_only_reached_unencrypted_on_request() -> None:
    with pytest.raises(BadInput, match="'other' is on another machine") as refused:
        read_servers("nats://127.0.0.1,nats://other", PLAIN)

    assert refused.value.hint == "use tls://, or add --insecure"
    assert read_servers("nats://other", PLAIN, is_insecure=True).urls == ("nats://other:4222",)


def test_files_are_checked_at_once(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="CSP_NATS_CREDS: expected a file"):
        read_servers("nats://127.0.0.1", Settings(nats_creds=tmp_path / "none"))
    nonsense = tmp_path / "ca.pem"
    nonsense.write_text("nonsense")
    with pytest.raises(BadInput, match="CSP_NATS_CA: cannot use"):
        read_servers("tls://127.0.0.1", Settings(nats_ca=nonsense))


async def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "csp.cluster.nats_client", None)
    with pytest.raises(Refused, match="the package nats-py is not installed") as refused:
        await Bus.open(["nats://127.0.0.1:1"])

    assert "csp-groupchat[nats]" in refused.value.hint


# --- connections ---------------------------------------------------------------------------------


@pytest.fixture
def safe_server(tmp_path: Path, certificate: Certificate) -> Iterator[NatsServer]:
    with NatsServer(tmp_path, more=f"tls {{ {certificate.config} }}", scheme="tls") as server:
        yield server


async def test_a_server_with_a_certificate_of_the_ca_is_trusted(
    safe_server: NatsServer, certificate: Certificate
) -> None:
    assert await connected(read_servers(safe_server.url, Settings(nats_ca=certificate.ca)))


async def test_a_server_with_another_certificate_is_not_trusted(
    safe_server: NatsServer, tmp_path: Path
) -> None:
    other = make_certificate(tmp_path / "other")
    for ca in (None, other.ca):
        with pytest.raises(LogLost, match="certificate verify failed"):
            await connected(read_servers(safe_server.url, Settings(nats_ca=ca)))


async def test_nothing_is_sent_to_a_tls_address_that_offers_no_tls(tmp_path: Path) -> None:
    sent: list[bytes] = []
    creds = Operator().write_creds(tmp_path / "creds")

    async def offer_no_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id":"x","version":"2.15.1","headers":true,"proto":1,"nonce":"n"}\r\n')
        sent.append(await reader.read())

    async with StreamServer(offer_no_tls) as server:
        servers = read_servers(f"tls://127.0.0.1:{server.port}", Settings(nats_creds=creds))
        with pytest.raises(LogLost, match="does not offer TLS"):
            await Bus.open(servers)

    assert sent == [b""]


async def test_a_creds_file_with_a_jwt_opens_a_server_of_its_operator(tmp_path: Path) -> None:
    operator = Operator()
    creds = operator.write_creds(tmp_path / "gateway.creds")
    stranger = Operator().write_creds(tmp_path / "stranger.creds")
    with NatsServer(tmp_path / "nats", more=operator.config) as server:
        assert await connected(read_servers(server.url, Settings(nats_creds=creds)))
        for wrong in (None, stranger):
            with pytest.raises(LogLost, match="Authorization Violation"):
                await connected(read_servers(server.url, Settings(nats_creds=wrong)))


async def test_the_seed_of_a_key_opens_a_server_that_knows_the_key(tmp_path: Path) -> None:
    user, stranger = new_user(), new_user()
    more = f"accounts {{ CSP: {{ jetstream: enabled, users: [{{ nkey: {user.public} }}] }} }}"
    for name, key in (("seed", user), ("wrong", stranger)):
        (tmp_path / name).write_text(f"{key.seed}\n")
    with NatsServer(tmp_path / "nats", more=more) as server:
        assert await connected(read_servers(server.url, Settings(nats_creds=tmp_path / "seed")))
        with pytest.raises(LogLost, match="Authorization Violation"):
            await connected(read_servers(server.url, Settings(nats_creds=tmp_path / "wrong")))


async def test_a_real_server_that_is_too_old_is_refused(tmp_path: Path) -> None:
    """Only its version says so: it does everything else that is asked of it."""
    with NatsServer(tmp_path, program=old_server()) as server:
        with pytest.raises(Broken, match=f"version {VERSION}, expected 2.11 or newer") as refused:
            await Bus.open([server.url])

    assert "two writers" in refused.value.hint
