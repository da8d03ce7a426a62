"""The secret of a cluster and the keys of its rooms."""

from pathlib import Path

import pytest

from csp.cluster.bus import Bus
from csp.cluster.node import Node, read_secret
from csp.cluster.servers import NatsServers
from csp.errors import BadInput, Unauthenticated
from csp.gateway.auth import TokenStore
from csp.protocol.enums import AgentId, JoinRole, ParticipantKind
from csp.room.room_state import Participant, Room


def node(secret: bytes) -> Node:
    return Node(Bus(NatsServers(())), secret)


def test_a_token_of_one_room_is_worth_nothing_in_another() -> None:
    cluster = node(b"the secret")
    here, there = (TokenStore(cluster.key_of(name), "") for name in ("a", "b"))
    ada = AgentId("ada")
    room = Room(participants={ada: Participant(ada, "ada", ParticipantKind.CLI, JoinRole.AGENT, 1, 0.0)})
    token = here.issue(ada, 1)

    assert here.identify(token, room).id == "ada"
    assert not there.is_signed(token)
    with pytest.raises(Unauthenticated):
        there.identify(token, room)
    assert here.room_token != there.room_token


def test_all_gateways_with_the_same_secret_have_the_same_keys() -> None:
    assert node(b"one").key_of("a") == node(b"one").key_of("a") != node(b"two").key_of("a")


def test_a_secret_is_read_without_the_line_end(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"  0123456789abcdef\n")

    assert read_secret(tmp_path / "secret") == b"0123456789abcdef"


def test_a_missing_or_empty_secret_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"\n")
    cases = ((None, "common secret"), (tmp_path / "no", "cannot read"), (tmp_path / "empty", "empty"))
    for path, words in cases:
        with pytest.raises(BadInput, match=words):
            read_secret(path)
