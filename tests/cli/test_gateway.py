"""csp gateway: what it was told reaches the gateway, with every path checked."""

from pathlib import Path

import pytest

from csp.cli import gateway as gateway_module
from csp.cli.gateway import gateway_options, lan_address, reach_of
from csp.errors import BadInput, Refused
from tests.cli.recording import call_of, with_settings


def test_every_option_reaches_the_gateway(tmp_path: Path) -> None:
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).touch()
    (tmp_path / "work").mkdir()
    words = ("--tls-cert", "cert.pem", "--tls-key", "key.pem", "--insecure", "--supervise", "--dir", "work")
    call = with_settings(call_of("gateway", *words, cwd=tmp_path), port=1234)
    options = gateway_options(call)

    assert (options.tls_cert, options.tls_key) == (tmp_path / "cert.pem", tmp_path / "key.pem")
    assert (options.insecure, options.supervise) == (True, True)
    assert options.dir == tmp_path / "work"
    assert (options.settings.port, options.settings.room) == (1234, "work")


def test_without_options_it_is_plain_and_at_home_where_it_was_started(tmp_path: Path) -> None:
    options = gateway_options(call_of("gateway", cwd=tmp_path))

    assert (options.tls_cert, options.tls_key) == (None, None)
    assert (options.insecure, options.supervise, options.dir) == (False, False, tmp_path)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--tls-cert", "cert.pem"), "expected --tls-cert with --tls-key, got only one of them"),
        (("--tls-key", "cert.pem"), "expected --tls-cert with --tls-key, got only one of them"),
        (("--tls-cert", "none"), "--tls-cert: expected a file, got 'none'"),
        (("--dir", "cert.pem"), "--dir: expected a directory, got 'cert.pem'"),
    ],
)
def test_a_path_that_is_wrong_is_told(tmp_path: Path, words: tuple[str, ...], problem: str) -> None:
    (tmp_path / "cert.pem").touch()
    with pytest.raises(BadInput) as caught:
        gateway_options(call_of("gateway", *words, cwd=tmp_path))

    assert caught.value.message == problem


def test_the_address_for_other_machines_is_found_or_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_module, "own_address", lambda: "192.168.1.5")
    assert gateway_options(call_of("gateway", "--lan", cwd=tmp_path)).lan == "192.168.1.5"
    assert gateway_options(call_of("gateway", "--lan", "10.0.0.7", cwd=tmp_path)).lan == "10.0.0.7"
    for found in ("", "127.0.0.1"):
        monkeypatch.setattr(gateway_module, "own_address", lambda found=found: found)
        with pytest.raises(Refused, match="this machine has no network address"):
            lan_address("")
    with pytest.raises(BadInput, match="--lan: expected an IP address"):
        lan_address("0.0.0.0")


def test_up_passes_on_how_the_room_is_reached(tmp_path: Path) -> None:
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).touch()
    files = ("--tls-cert", "cert.pem", "--tls-key", "key.pem")
    given = reach_of(call_of("up", *files, "--insecure", cwd=tmp_path))

    assert reach_of(call_of("up", cwd=tmp_path)) == ()
    assert reach_of(call_of("up", "--lan", "10.0.0.7", cwd=tmp_path)) == ("--lan", "10.0.0.7")
    # The gateway runs in another directory.
    assert given == (
        *("--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem"), "--insecure"),
    )
    with pytest.raises(BadInput, match="expected --tls-cert with --tls-key"):
        reach_of(call_of("up", *files[:2], cwd=tmp_path))
