"""The certificate that a room makes for other machines: whose it is, how long it lasts, who may read it."""

import importlib.util
import shutil
import ssl
import stat
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from csp.errors import BadInput, Broken, Refused
from csp.gateway.lan_certificate import (
    MIN_LEFT,
    VALID,
    LanCertificate,
    certificate_folder,
    certificate_of,
    ensure_certificate,
    is_usable,
)

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
ADDRESS = "192.168.1.5"


@pytest.fixture
def made(tmp_path: Path) -> LanCertificate:
    return ensure_certificate(tmp_path / "tls", ADDRESS, NOW)


def test_it_is_made_once_and_only_its_user_can_read_it(made: LanCertificate) -> None:
    before = made.cert.read_bytes(), made.key.read_bytes()
    again = ensure_certificate(made.cert.parent, ADDRESS, NOW + timedelta(days=100))

    assert (again.cert.read_bytes(), again.key.read_bytes()) == before
    assert {stat.S_IMODE(path.stat().st_mode) for path in (made.cert, made.key)} == {0o600}
    assert stat.S_IMODE(made.cert.parent.stat().st_mode) == 0o700
    assert (made.cert.name, made.key.name) == ("192.168.1.5.crt", "192.168.1.5.key")
    assert certificate_of(Path("/t"), "fe80::1").cert == Path("/t/fe80--1.crt")


def test_it_is_for_one_address_and_signs_nothing_else(made: LanCertificate) -> None:
    text = subprocess.run(
        ["openssl", "x509", "-in", str(made.cert), "-noout", "-text", "-fingerprint", "-sha256"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout

    assert "IP Address:192.168.1.5" in text and "DNS:" not in text
    assert "CA:FALSE" in text and "TLS Web Server Authentication" in text
    assert f"Fingerprint={made.fingerprint}" in text


@pytest.mark.parametrize(
    ("days", "is_kept"),
    [(0, True), ((VALID - MIN_LEFT).days, True), ((VALID - MIN_LEFT).days + 1, False), (-2, False)],
)
def test_one_that_ends_soon_is_made_again(made: LanCertificate, days: int, is_kept: bool) -> None:
    before = made.fingerprint
    ensure_certificate(made.cert.parent, ADDRESS, NOW + timedelta(days=days))

    assert (made.fingerprint == before) is is_kept


def test_a_new_address_gets_a_certificate_of_its_own(made: LanCertificate) -> None:
    other = ensure_certificate(made.cert.parent, "10.0.0.7", NOW)

    assert other.fingerprint != made.fingerprint
    shutil.copy(other.cert, made.cert)
    shutil.copy(other.key, made.key)
    assert not is_usable(made, ADDRESS, NOW)


def _key_of_another(made: LanCertificate) -> None:
    shutil.copy(ensure_certificate(made.cert.parent, "10.0.0.7", NOW).key, made.key)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda made: made.key.unlink(),
        lambda made: made.cert.write_text("nonsense"),
        lambda made: made.key.chmod(0o644),
        lambda made: made.cert.chmod(0o644),
        _key_of_another,
    ],
)
def test_one_that_cannot_be_used_is_made_again(
    made: LanCertificate, spoil: Callable[[LanCertificate], None]
) -> None:
    spoil(made)
    assert not is_usable(made, ADDRESS, NOW)
    again = ensure_certificate(made.cert.parent, ADDRESS, NOW)

    assert is_usable(again, ADDRESS, NOW)
    assert isinstance(again.context(), ssl.SSLContext)
    assert stat.S_IMODE(again.key.stat().st_mode) == 0o600


def test_it_lies_in_the_users_data() -> None:
    assert certificate_folder({"HOME": "/h"}) == Path("/h/.local/share/csp/tls")
    assert certificate_folder({"XDG_DATA_HOME": "/d"}) == Path("/d/csp/tls")


def test_without_a_home_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.gateway.lan_certificate.xdg", lambda *_: "")
    with pytest.raises(BadInput, match="HOME: expected the path of a home directory"):
        certificate_folder({})


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "tls").write_text("in the way")
    with pytest.raises(Broken, match="cannot write to"):
        ensure_certificate(tmp_path / "tls", ADDRESS, NOW)


def test_what_is_missing_is_named_with_the_way_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Refused) as caught:
        ensure_certificate(tmp_path, ADDRESS, NOW)

    assert caught.value.message == "the package 'cryptography' is not installed"
    assert "csp-groupchat[lan]" in caught.value.hint
