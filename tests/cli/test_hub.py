"""csp hub: what it was told reaches the hub."""

from pathlib import Path

import pytest

from csp.cli.hub import hub_options
from csp.errors import BadInput
from tests.cli.recording import call_of, with_settings

SERVERS = "nats://127.0.0.1:1,nats://127.0.0.1:2"


def test_every_option_reaches_the_hub(tmp_path: Path) -> None:
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).touch()
    words = ("--journal", SERVERS, "--tls-cert", "cert.pem", "--tls-key", "key.pem", "--insecure")
    call = with_settings(call_of("hub", *words, "--supervise", "--idle", "5", cwd=tmp_path), port=1234)
    options = hub_options(call)

    assert (options.settings.journal, options.settings.port) == (SERVERS, 1234)
    assert (options.tls_cert, options.tls_key) == (tmp_path / "cert.pem", tmp_path / "key.pem")
    assert (options.insecure, options.supervise, options.idle_s) == (True, True, 5.0)


def test_a_hub_has_patience_with_idle_rooms_and_a_folder_of_its_own(tmp_path: Path) -> None:
    options = hub_options(call_of("hub", "--journal", SERVERS, cwd=tmp_path))

    assert options.idle_s == 600.0
    assert options.settings.history_dir.name == "history"


def test_a_hub_needs_a_cluster(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="needs the NATS servers"):
        hub_options(call_of("hub", cwd=tmp_path))
