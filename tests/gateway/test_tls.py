"""A room for other machines: addresses, certificates."""

import asyncio
import json
import ssl
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from csp.config import GatewayOptions, Settings
from csp.errors import BadInput, CspError
from csp.gateway.server import run
from csp.http_client import GatewayClient
from tests.gateway.processes import Process, refused, wait_for_room


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_an_address_for_others_needs_tls(tmp_path: Path, host: str) -> None:
    options = GatewayOptions(settings=Settings(host=host, port=0), dir=tmp_path)

    with pytest.raises(BadInput) as caught:
        run(options)

    assert caught.value.message == (
        f"host {host!r} can be reached from outside, and tokens would be sent unencrypted"
    )
    assert caught.value.hint == "add --tls-cert and --tls-key, or --insecure"


def test_insecure_has_to_be_said_aloud(tmp_path: Path) -> None:
    code, lines = refused(tmp_path / "refused", "--port", "0", "--host", "0.0.0.0")
    with Process(tmp_path / "room", "--host", "0.0.0.0", "--insecure") as room:
        assert room.gateway.get("/agents") == []

    assert (code, len(lines)) == (2, 1)
    assert "--insecure" in lines[0]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    command += ["-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key


def _start_tls(process: Process) -> str:
    process.launch()
    return wait_for_room(process.state_dir).url


async def test_a_room_with_tls_makes_the_round_trip(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    process = Process(tmp_path, "--tls-cert", str(cert), "--tls-key", str(key), "--host", "0.0.0.0")
    try:
        url = await asyncio.to_thread(_start_tls, process)
        token = wait_for_room(process.state_dir).token
        trust = ssl.create_default_context(cafile=str(cert))
        headers = {"X-Auth-Token": token}
        connector = aiohttp.TCPConnector(ssl=trust)
        async with aiohttp.ClientSession(url, headers=headers, connector=connector) as session:
            async with session.ws_connect("/ws?after=0") as watching:
                async with session.post("/message", data=b'{"to": "all", "content": "hello"}') as response:
                    assert response.status == 200
                event = json.loads(await watching.receive_str(timeout=60))
        with pytest.raises(CspError):
            # Plain HTTP gets nowhere.
            await asyncio.to_thread(GatewayClient(process.url, "token").get, "/health")

        assert url == f"https://127.0.0.1:{process.port}"
        assert event["text"] == "hello"
    finally:
        await asyncio.to_thread(process.stop)


def test_the_command_trusts_a_certificate_it_is_told_of(
    tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    cert, key = certificate
    process = Process(tmp_path, "--tls-cert", str(cert), "--tls-key", str(key))
    command = [sys.executable, "-m", "csp.cli", "agents", "--json"]
    try:
        _start_tls(process)
        told = subprocess.run(
            command,
            env=process.env | {"SSL_CERT_FILE": str(cert)},
            capture_output=True,
            text=True,
            check=False,
        )
        untold = subprocess.run(command, env=process.env, capture_output=True, text=True, check=False)
    finally:
        process.stop()

    assert (told.returncode, told.stdout) == (0, "[]\n")
    assert untold.returncode == 1
    assert "is not trusted" in untold.stderr


def test_a_certificate_that_is_none_is_refused(tmp_path: Path) -> None:
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("nonsense")

    with pytest.raises(BadInput, match="cannot use the certificate"):
        run(GatewayOptions(settings=Settings(port=0), tls_cert=nonsense, tls_key=nonsense, dir=tmp_path))
