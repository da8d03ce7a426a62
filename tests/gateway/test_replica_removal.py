"""Text is removed from a room that three gateways serve, while one of them is off."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from csp.cli import main
from csp.http_client import GatewayClient
from tests.cluster.gateways import ROOM, Gateways
from tests.cluster.nats_servers import NatsCluster, NatsServer
from tests.cluster.searching import files_with
from tests.rooms import LiveRoom
from tests.waiting import wait_until_sync

SECRET = "the-password-is-swordfish"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    with NatsServer(tmp_path / "nats") as server:
        yield server


@pytest.fixture
def gateways(server: NatsServer, tmp_path: Path) -> Iterator[Gateways]:
    with Gateways(tmp_path / "gateways", [server.url]) as gateways:
        yield gateways


def say(client: GatewayClient, text: str) -> tuple[str, int]:
    sent = client.post("/message", {"to": "all", "content": text})
    return str(sent["id"]), int(sent["seq"])


def found_in(folder: Path) -> list[str]:
    """Return the files that contain the text."""
    return files_with(SECRET.encode(), folder)


def seen_by(gateways: Gateways, words: str) -> list[int]:
    return [len(one.gateway.get(f"/history?q={words}&limit=50")["items"]) for one in gateways.all]


def wait_gone(folder: Path) -> None:
    wait_until_sync(lambda: not found_in(folder), what="the end of the text")


def check_equal(gateways: Gateways, server: NatsServer, folder: Path) -> bytes:
    """Check that all journals and the log are the same, byte for byte; return them."""
    journal = gateways.wait_equal()
    copy = folder / "copy"
    assert main(["journal", "copy", f"{server.url}/{ROOM}", str(copy)]) == 0
    assert (copy / "journal.jsonl").read_bytes() == journal
    return journal


@pytest.mark.parametrize("place", ["owner", "edge"])
def test_a_redacted_text_is_gone_everywhere_when_the_gateway_that_was_off_has_started(
    gateways: Gateways, server: NatsServer, tmp_path: Path, place: str
) -> None:
    owner, (edge, off) = gateways.owner(), gateways.edges()
    message, _ = say(owner.gateway, f"{SECRET} one")
    for number in range(5):
        say(edge.gateway, f"message {number}")
    gateways.wait_equal()
    off.kill9()
    asked = (owner if place == "owner" else edge).gateway
    asked.post(f"/messages/{message}/redact")
    after, _ = say(edge.gateway, "afterwards")
    wait_gone(tmp_path / "nats")
    assert found_in(tmp_path / "gateways") and all(str(off.folder) in path for path in found_in(tmp_path))
    off.start()
    wait_gone(tmp_path)
    journal = check_equal(gateways, server, tmp_path)

    assert journal.count(b'"text":"[redacted]"') == 1
    assert after.encode() in journal
    assert seen_by(gateways, "swordfish") == [0, 0, 0]
    assert seen_by(gateways, "afterwards") == [1, 1, 1]


def test_a_removal_that_its_owner_did_not_finish_is_finished_by_the_next(
    gateways: Gateways, server: NatsServer, tmp_path: Path
) -> None:
    owner, (edge, other) = gateways.owner(), gateways.edges()
    message, _ = say(owner.gateway, f"{SECRET} two")
    gateways.wait_equal()
    # The owner has promised the removal, and is gone at some step of it.
    edge.gateway.post(f"/messages/{message}/redact")
    owner.kill9()
    say(other.gateway, "afterwards")
    owner.start()
    wait_gone(tmp_path)

    assert b"[redacted]" in check_equal(gateways, server, tmp_path)


def test_a_pruned_room_begins_with_the_same_base_at_every_gateway(
    gateways: Gateways, server: NatsServer, tmp_path: Path
) -> None:
    owner, (edge, off) = gateways.owner(), gateways.edges()
    say(owner.gateway, f"{SECRET} three")
    gateways.wait_equal()
    off.kill9()
    for number in range(10):
        _, seq = say(owner.gateway, f"message {number}")
    edge.gateway.post("/history/prune", {"before": seq - 3})
    say(edge.gateway, "afterwards")
    off.start()
    wait_gone(tmp_path)
    journal = check_equal(gateways, server, tmp_path)

    assert journal.startswith(b'{"v":1,"type":"base","seq":%d,' % (seq - 4))
    assert journal.count(b"\n") == 1 + 4 + 2
    assert seen_by(gateways, "message") == [4, 4, 4]
    for one in gateways.all:
        assert one.gateway.get("/health")["seq"] == seq + 2


def test_a_new_gateway_begins_with_the_base_of_a_pruned_room(
    gateways: Gateways, server: NatsServer, tmp_path: Path
) -> None:
    owner, (edge, new) = gateways.owner(), gateways.edges()
    for number in range(10):
        _, seq = say(owner.gateway, f"{SECRET} {number}")
    new.stop()
    edge.gateway.post("/history/prune", {"before": seq})
    empty(new)
    new.start()
    say(new.gateway, "afterwards")
    journal = check_equal(gateways, server, tmp_path)

    assert journal.startswith(b'{"v":1,"type":"base"')
    assert len({gateways.health(one)["roomId"] for one in gateways.all}) == 1


def empty(gateway: LiveRoom) -> None:
    """Remove what a gateway has of its room."""
    for path in gateway.folder.iterdir():
        path.unlink()


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_three_servers_forget_a_text_within_minutes(tmp_path: Path) -> None:
    """Their logs of replication keep it until they are compacted."""
    with (
        NatsCluster(tmp_path / "nats") as cluster,
        Gateways(tmp_path / "gateways", cluster.urls) as gateways,
    ):
        owner, (edge, off) = gateways.owner(), gateways.edges()
        message, _ = say(owner.gateway, f"{SECRET} four")
        gateways.wait_equal()
        off.kill9()
        edge.gateway.post(f"/messages/{message}/redact")
        off.start()
        gateways.wait_equal()
        wait_until_sync(lambda: not found_in(tmp_path), 600, what="the end of the text")
