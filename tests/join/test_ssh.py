"""What is run over ssh, and how its answers are read."""

import pytest

from csp.errors import Broken, NotFound, Refused, Unreachable
from csp.join.ssh import RemoteRoom, Ssh, choose, last_line

APP = RemoteRoom("app", "http://127.0.0.1:8765", "secret")
WEB = RemoteRoom("web", "http://127.0.0.1:8766", "secret")


def ssh(script: str) -> Ssh:
    """Return a host whose ssh is a shell script; the command for the host is its last argument."""
    return Ssh(("sh", "-c", script, "ssh"), "me@server", "csp", {"PATH": "/usr/bin:/bin"})


def test_the_rooms_are_in_the_last_line() -> None:
    row = '[{"room": "app", "url": "http://127.0.0.1:8765", "token": "secret", "more": 1}]'

    assert ssh(f"echo welcome; echo '{row}'; echo").rooms(is_attended=False) == [APP]


@pytest.mark.parametrize(
    ("script", "error", "message", "hint"),
    [
        ("exit 127", NotFound, "me@server has no command 'csp'", "--remote-csp PATH"),
        ("echo 'csp: no home' >&2; exit 1", Broken, "csp failed on me@server: csp: no home", ""),
        ("echo nonsense", Broken, "csp on me@server gave an answer that cannot be read", "versions"),
        ("echo '[1]'", Broken, "csp on me@server gave an answer that cannot be read", "versions"),
        ("exit 255", Unreachable, "ssh me@server failed: it said nothing", ""),
        ("echo 'No route' >&2; exit 255", Unreachable, "ssh me@server failed: No route", ""),
        (
            "echo 'me@server: Permission denied (publickey).' >&2; exit 255",
            Unreachable,
            "ssh me@server failed: me@server: Permission denied (publickey).",
            "ssh -o BatchMode=yes me@server true",
        ),
    ],
)
def test_a_failure_says_whose_it_is(script: str, error: type[Broken], message: str, hint: str) -> None:
    with pytest.raises(error) as caught:
        ssh(script).rooms(is_attended=False)

    assert (type(caught.value), caught.value.message) == (error, message)
    assert hint in caught.value.hint


def test_a_missing_ssh_is_named() -> None:
    with pytest.raises(NotFound, match="cannot run '/nosuch/ssh'"):
        Ssh(("/nosuch/ssh",), "server", "csp", {}).rooms(is_attended=False)


def test_only_a_person_is_asked_for_a_password() -> None:
    rows = (
        """case "$*" in *BatchMode=yes*) echo '[]';; *) echo '[{"room":"a","url":"u","token":"t"}]';; esac"""
    )

    assert ssh(rows).rooms(is_attended=False) == []
    assert ssh(rows).rooms(is_attended=True) == [RemoteRoom("a", "u", "t")]


def test_the_forwarding_has_no_secret_and_ends_with_its_input() -> None:
    words = Ssh(("ssh",), "me@server", "csp", {}).forwarding("http://[::1]:8765", "/run/x.sock")

    assert words[words.index("-L") + 1] == "/run/x.sock:[::1]:8765"
    assert words[-3:-1] == ["--", "me@server"]
    assert "exec cat" in words[-1]
    assert "BatchMode=yes" in words


def test_a_room_is_chosen_by_name_or_because_it_is_the_only_one() -> None:
    assert choose([APP, WEB], "web", "server") == WEB
    assert choose([APP], "", "server") == APP
    with pytest.raises(Refused, match="several rooms are running on server: app, web"):
        choose([APP, WEB], "", "server")
    with pytest.raises(Unreachable, match="room 'x' is not running on server") as caught:
        choose([APP, WEB], "x", "server")
    assert caught.value.hint == "running there: app, web"
    with pytest.raises(Unreachable, match="no room is running on server"):
        choose([], "", "server")


def test_the_last_line_that_is_not_empty_counts() -> None:
    assert last_line(b"one\ntwo\xff\n\n  \n") == "two\ufffd"
    assert last_line(b"") == ""
