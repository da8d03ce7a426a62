"""Agents of one machine in a room with a URL: with TLS and a private authority, and with several gateways."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from csp.errors import BadInput, Forbidden
from csp.fast_start import fast_http
from csp.join.url_link import check, read_token
from tests.cluster.gateways import TOKEN, Gateways
from tests.cluster.nats_servers import NatsServer
from tests.join.asking import answered, say
from tests.panes.place import Done, Place
from tests.rooms import LiveRoom

_CURVE: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path / "laptop") as place:
        yield place


def openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True)


@pytest.fixture
def ca(tmp_path: Path) -> Path:
    """An authority of its own, and a certificate for loopback that it has signed; return the folder."""
    folder = tmp_path / "tls"
    folder.mkdir()
    ca, key = str(folder / "ca.pem"), str(folder / "ca.key")
    openssl("req", "-x509", *_CURVE, "-keyout", key, "-out", ca, "-days", "2", "-subj", "/CN=our authority")
    own = ("-keyout", str(folder / "key.pem"), "-out", str(folder / "request"), "-subj", "/CN=gateway")
    openssl("req", *_CURVE, *own, "-addext", "subjectAltName=IP:127.0.0.1", "-new")
    words = ("-in", str(folder / "request"), "-CA", ca, "-CAkey", key, "-out", str(folder / "cert.pem"))
    openssl("x509", "-req", *words, "-days", "2", "-copy_extensions", "copy")
    return folder


@pytest.fixture
def room(tmp_path: Path, ca: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveRoom]:
    """A room that is served with TLS."""
    options = ("--tls-cert", str(ca / "cert.pem"), "--tls-key", str(ca / "key.pem"))
    monkeypatch.setattr(fast_http, "_trusted", {})
    served = LiveRoom(tmp_path / "room", *options, name="app")
    served.url = served.url.replace("http:", "https:")
    fast_http.trust(served.url, str(ca / "ca.pem"))
    with served:
        yield served


def token_file(folder: Path, token: str, mode: int = 0o600) -> Path:
    path = folder / "token"
    path.write_text(f"{token}\n")
    path.chmod(mode)
    return path


def join(laptop: Place, urls: str, token: Path, *words: str) -> Done:
    given = ("--detach", "--demo", "--agents", "ada", "--as", "joined", "--token-file", str(token))
    return laptop.csp("join", urls, *given, *words)


def test_an_agent_works_in_a_room_with_a_private_authority(
    room: LiveRoom, laptop: Place, ca: Path, tmp_path: Path
) -> None:
    token = token_file(tmp_path, room.token)
    untrusting = join(laptop, room.url, token)
    done = join(laptop, room.url, token, "--ca", str(ca / "ca.pem"))
    say(room, "hello")
    answered(room, "hello")
    # Commands find the authority in the announcement.
    sent = laptop.csp("send", "ada", "from a command", "--wait")
    status, ended = laptop.csp("status"), laptop.csp("down", "--room", "joined")

    assert (untrusting.code, "is not trusted" in untrusting.err) == (1, True)
    assert (done.code, sent.code, ended.code) == (0, 0, 0), done.err + sent.err + ended.err
    assert f"room app at {room.url}: ok" in status.out
    assert f"link to {room.url}" in ended.err


@pytest.mark.parametrize("how", [pytest.param(signal.SIGKILL, marks=pytest.mark.full), signal.SIGSTOP])
def test_an_agent_works_on_when_its_gateway_goes(how: signal.Signals, laptop: Place, tmp_path: Path) -> None:
    with (
        NatsServer(tmp_path / "nats") as server,
        Gateways(tmp_path / "gateways", [server.url]) as gateways,
    ):
        first, *others = gateways.all
        done = join(laptop, ",".join(gateways.urls), token_file(tmp_path, TOKEN))
        say(others[0], "before")
        answered(others[0], "before")
        say(others[0], "meanwhile")
        pid = first.pid
        if how is signal.SIGKILL:
            first.kill9()
        else:
            os.kill(pid, how)
        answered(others[0], "before", "meanwhile")
        say(others[1], "after")
        answered(others[1], "after")
        status = laptop.csp("status")
        ended = laptop.csp("down", "--room", "joined")
        if how is signal.SIGKILL:
            first.start()
        else:
            os.kill(pid, signal.SIGCONT)
        gateways.wait_equal()

    assert (done.code, status.code, ended.code) == (0, 0, 0), done.err + status.err + ended.err
    assert first.url not in status.out


@pytest.mark.parametrize(
    ("urls", "words", "problem"),
    [
        ("https://127.0.0.1:1", (), "needs --token-file"),
        ("http://192.0.2.1:1", ("--token-file", "token"), "is not encrypted"),
        ("https://127.0.0.1:1", ("--token-file", "nosuch"), "cannot read the token in"),
        ("https://127.0.0.1:1", ("--token-file", "token", "--ca", "nosuch"), "--ca: expected a file"),
        ("https://127.0.0.1:1", ("--token-file", "token", "--ssh", "x"), "--ssh is not for the target"),
        ("server:app", ("--token-file", "token"), "--token-file is not for the target 'server:app'"),
    ],
)
def test_what_cannot_be_joined_is_explained(
    laptop: Place, urls: str, words: tuple[str, ...], problem: str
) -> None:
    token_file(laptop.dir, "secret")
    done = laptop.csp("join", urls, "--detach", *words)

    assert (done.code in (1, 2), problem in done.err) == (True, True), done.err


def test_a_token_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="others can read the token"):
        read_token(token_file(tmp_path, "secret", 0o640))
    assert read_token(token_file(tmp_path, "secret")) == "secret"
    with pytest.raises(BadInput, match="expected one line with a token"):
        read_token(token_file(tmp_path, "two\nlines"))


def test_only_the_token_of_the_room_joins_it(room: LiveRoom, ca: Path) -> None:
    agent = room.gateway.post("/register", {"agentId": "ada"})["token"]
    problems = {}
    for name, token in (("agent", agent), ("wrong", "wrong")):
        with pytest.raises(Forbidden) as caught:
            check(room.url, token, str(ca / "ca.pem"))
        problems[name] = caught.value.message

    assert check(room.url, room.token, str(ca / "ca.pem")) == "app"
    assert problems == {
        "agent": "the token is that of an agent",
        "wrong": "the token is not valid in this room",
    }
