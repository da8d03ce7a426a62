"""What `csp join` is given, and what rooms and agents are called here."""

import pytest

from csp.errors import BadInput
from csp.join.target import SshTarget, UrlTarget, local_name, machine_label, read_target, suffixed


@pytest.mark.parametrize(
    ("text", "destination", "room", "host"),
    [
        ("server", "server", "", "server"),
        ("server:", "server", "", "server"),
        ("me@server", "me@server", "", "server"),
        ("me@server:app", "me@server", "app", "server"),
        ("me@10.0.0.1:app-2", "me@10.0.0.1", "app-2", "10.0.0.1"),
        ("me@[fe80::1%eth0]:app", "me@[fe80::1%eth0]", "app", "fe80::1%eth0"),
        ("me@[::1]", "me@[::1]", "", "::1"),
    ],
)
def test_a_host_is_named_as_ssh_names_it(text: str, destination: str, room: str, host: str) -> None:
    target = read_target(text)

    assert (target, target.host) == (SshTarget(destination, room), host)


def test_gateways_are_named_by_their_urls() -> None:
    target = read_target("https://gw1.example:8765,https://gw2.example")

    assert target == UrlTarget("https://gw1.example:8765,https://gw2.example")
    assert target.host == "gw1.example"


@pytest.mark.parametrize(
    "text",
    ["", "-oProxyCommand=touch x", "-x@host", "me@-x", "a b", "host:My Room", "host;x", "me@", "ftp://x"],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        read_target(text)


@pytest.mark.parametrize(
    ("host", "label"),
    [
        ("Laptop", "laptop"),
        ("laptop.example.org", "laptop"),
        ("10.0.0.1", "10-0-0-1"),
        ("fe80::1%eth0", "fe80-1-eth0"),
        ("a-very-long-name-of-a-machine", "a-very-long-name"),
        ("...", "host"),
    ],
)
def test_a_machine_has_a_short_label(host: str, label: str) -> None:
    assert machine_label(host) == label


def test_names_stay_within_their_limit() -> None:
    assert local_name("app", "server.example") == "app-server"
    assert local_name("a" * 32, "server") == f"{'a' * 25}-server"
    assert suffixed("claude", "laptop") == "claude-laptop"
    assert suffixed("a" * 32, "laptop") == f"{'a' * 25}-laptop"
