"""csp up for other machines: with a certificate of one's own, or openly without one."""

import pytest

from csp.gateway.lan_certificate import ensure_certificate, utc_now
from tests.panes.place import Place


@pytest.mark.full
def test_up_takes_what_an_address_for_others_needs(place: Place) -> None:
    place.set(CSP_DEMO_SPEED="0", CSP_HOST="0.0.0.0")
    demo = ("--demo", "--agents", "ada")
    bare = place.csp("up", "--detach", *demo)
    assert bare.code == 1
    assert "add --tls-cert and --tls-key, or --insecure" in bare.err
    files = ensure_certificate(place.folder / "tls", "127.0.0.1", utc_now())
    tls = ("--tls-cert", str(files.cert), "--tls-key", str(files.key))
    untrusting = place.csp("up", "--detach", *demo, *tls)
    assert (
        "is not trusted (set CSP_CA_FILE to the gateway's certificate, or to that of its authority)"
        in untrusting.err
    )
    place.wait(lambda: not place.left_over(), "the end of the gateway that nobody trusts")
    place.set(SSL_CERT_FILE=str(files.cert))
    place.up(*demo, *tls)

    assert place.csp("agents").out.startswith("ada")
    done = place.csp("send", "ada", "hello", "--wait", "--timeout", "60")
    assert done.code == 0, f"{done.err}\n{place.shown()}"
    assert place.csp("down").code == 0
    place.unset("SSL_CERT_FILE")
    place.up(*demo, "--insecure")
    assert "ada" in place.online()
