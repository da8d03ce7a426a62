"""Addresses of this machine."""

import socket

import pytest

from csp.errors import BadInput
from csp.gateway import own_address as module
from csp.gateway.own_address import check_address, is_loopback, own_address


def test_the_own_address_is_the_one_that_packets_to_others_leave_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module._NOBODY, socket.AF_INET, "127.0.0.1")

    assert own_address(socket.AF_INET) == "127.0.0.1"


def test_a_machine_without_a_network_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module._NOBODY, socket.AF_INET, "not an address")

    assert own_address() == ""


@pytest.mark.parametrize(("text", "address"), [("192.168.1.5", "192.168.1.5"), ("FE80::1", "fe80::1")])
def test_an_address_is_read(text: str, address: str) -> None:
    assert check_address(text) == address


@pytest.mark.parametrize("text", ["0.0.0.0", "::", "224.0.0.1", "myhost", "1.2.3.4:80", "1.2.3"])
def test_what_is_not_one_address_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="--lan: expected an IP address of this machine"):
        check_address(text)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("LocalHost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.0.7", False),
        ("localhost.evil.example", False),
        ("", False),
    ],
)
def test_loopback_is_this_machine_alone(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
