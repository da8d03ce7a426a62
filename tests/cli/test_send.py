"""csp send, resend, cancel and continue without a room: what they ask for, what they make of the answers."""

import io
import sys
from typing import Any

import pytest

from csp.cli import send as sending
from csp.errors import BadInput, NotFound, TooLarge, Unreachable
from tests.cli.recording import Clock, Recorded, Several, call_of, run

SENT = {"id": "m-1", "seq": 4, "recipients": ["claude"]}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(sending, "time", clock)
    return clock


def reply(seq: int, sender: str, text: str, **fields: Any) -> dict[str, Any]:
    item = {"type": "agent_response", "seq": seq, "sender": sender, "text": text, "replyTo": "m-1"}
    return item | fields


def room(recipients: dict[str, Any], *pages: list[dict[str, Any]], sent: Any = None) -> Recorded:
    return Recorded(
        {
            "/message": sent or SENT | {"recipients": list(recipients)},
            "/history": Several(*({"items": page} for page in (*pages, []))),
            "/messages/m-1": {"recipients": recipients},
        }
    )


# --- what is asked for ---------------------------------------------------------------------------


def test_every_option_of_send_reaches_the_room(capsys: pytest.CaptureFixture[str]) -> None:
    gateway = Recorded({"/message": SENT})
    options = ("--thread", "side", "--reply-to", "m-0", "--id", "mine", "--urgent")

    assert run(gateway, "send", "claude", "hello", "there", *options) == 0
    assert gateway.asked == [
        (
            "POST",
            "/message",
            {
                "to": "claude",
                "content": "hello there",
                "thread": "side",
                "replyTo": "m-0",
                "id": "mine",
                "urgent": True,
            },
        )
    ]


def test_what_was_not_said_is_left_to_the_room(capsys: pytest.CaptureFixture[str]) -> None:
    gateway = Recorded({"/message": SENT | {"recipients": []}})
    run(gateway, "send", "all", "hello")

    assert gateway.bodies == [{"to": "all", "content": "hello"}]
    assert capsys.readouterr() == ("m-1\n", "sent #4 to nobody\n")


@pytest.mark.parametrize(
    ("verb", "out", "err"),
    [
        ("resend", "m-7\n", "sent again as m-7\n"),
        ("cancel", "", "cancelled m 1\n"),
        ("continue", "", "released m 1\n"),
    ],
)
def test_each_act_on_a_message_is_asked_for_by_its_name(
    verb: str, out: str, err: str, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway = Recorded({f"/messages/m%201/{verb}": {"id": "m-7"}})

    assert run(gateway, verb, "m 1") == 0
    assert gateway.asked == [("POST", f"/messages/m%201/{verb}", {})]
    assert capsys.readouterr() == (out, err)
    assert run(gateway, verb, "m 1", "--json") == 0
    assert capsys.readouterr() == ('{"id": "m-7"}\n', "")


def test_from_last_looks_back_for_what_the_agent_itself_said() -> None:
    items = [
        reply(1, "codex", "old"),
        reply(2, "codex", "one\n\ntwo"),
        {"type": "human_message", "seq": 3, "sender": "human", "text": "to codex"},
    ]
    gateway = Recorded({"/message": SENT, "/history": Several({"items": items}, {"items": []})})
    run(gateway, "send", "claude", "look", "--from-last", "codex")

    assert gateway.asked[0][2] == {
        "limit": 200,
        "agent": "codex",
        "types": "human_message,agent_call,agent_response",
    }
    assert gateway.bodies[-1]["content"] == "look\n\ncodex said:\n> one\n>\n> two"


def test_from_last_of_nobody_is_not_found() -> None:
    gateway = Recorded({"/history": {"items": []}})
    with pytest.raises(NotFound, match="'codex' has sent no message yet"):
        run(gateway, "send", "claude", "--from-last", "codex")


@pytest.mark.parametrize("words", [["send", "claude"], ["send", "claude", " ", "\t"]])
def test_nothing_but_blanks_is_not_sent(words: list[str]) -> None:
    with pytest.raises(BadInput, match="expected text to send"):
        run(Recorded({}), *words)


def test_stdin_is_read_up_to_the_limit_and_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    def stdin(raw: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))

    stdin(b"x" * sending.MAX_TEXT_BYTES)
    assert len(sending.read_stdin()) == sending.MAX_TEXT_BYTES == 262144
    stdin(b"x" * (sending.MAX_TEXT_BYTES + 1))
    with pytest.raises(TooLarge, match="text is over 262144 bytes"):
        sending.read_stdin()
    stdin(b"caf\xe9")
    with pytest.raises(BadInput, match="expected text in UTF-8"):
        sending.read_stdin()
    stdin("é\n\n".encode())
    assert sending.read_stdin() == "é"
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(BadInput, match="stdin is closed"):
        sending.read_stdin()


# --- waiting -------------------------------------------------------------------------------------


def test_wait_reads_on_from_the_message_and_takes_each_reply_once(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    states = {"claude": {"state": "confirmed"}, "codex": {"state": "confirmed"}}
    gateway = room(
        states, [reply(5, "claude", "first")], [reply(6, "claude", "again"), reply(7, "codex", "me")]
    )

    assert run(gateway, "send", "all", "x", "--wait") == 0
    assert capsys.readouterr().out == "claude: first\ncodex: me\n"
    looks = [query for method, path, query in gateway.asked if path == "/history"]
    assert [query["after"] for query in looks] == [4, 5]
    assert all(query["wait"] == "1.000" for query in looks)


def test_replies_to_other_messages_do_not_end_the_wait(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway = room(
        {"claude": {"state": "typed"}},
        [reply(5, "claude", "to another", replyTo="m-0"), reply(6, "codex", "not asked")],
        [reply(8, "claude", "now")],
    )

    assert run(gateway, "send", "claude", "x", "--wait") == 0
    assert capsys.readouterr().out == "now\n"


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ({"state": "failed", "reason": "no composer"}, "failed: no composer"),
        ({"state": "withdrawn"}, "withdrawn"),
        ({"state": "expired"}, "expired"),
    ],
)
def test_a_delivery_that_is_lost_ends_the_wait_with_exit_1(
    state: dict[str, str], told: str, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(room({"claude": state}), "send", "claude", "x", "--wait", "--json") == 1
    out, err = capsys.readouterr()

    assert err.endswith(f"csp: claude: {told}\n")
    assert f'"failed": {{"claude": "{told}"}}' in out


def test_wait_gives_up_after_its_timeout_with_what_it_waited_for(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway = room({"claude": {"state": "held", "reason": "busy"}})
    waits: list[float] = []

    def wait(path: str, **query: Any) -> Any:
        waits.append(float(query.get("wait", 0.0)))
        clock.now += waits[-1]
        return Recorded.get(gateway, path, **query)

    monkeypatch.setattr(gateway, "get", wait)

    assert run(gateway, "send", "claude", "x", "--wait", "--timeout", "2.5") == 1
    assert capsys.readouterr().err.endswith("csp: claude: no reply within 2.5 s (busy)\n")
    assert [wait for wait in waits if wait] == [1.0, 1.0, 0.5]


def test_a_gateway_that_is_away_is_waited_for(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    gateway = Recorded(
        {
            "/message": SENT,
            "/history": Several(
                Unreachable("away"), Unreachable("away"), {"items": [reply(5, "claude", "hi")]}
            ),
            "/messages/m-1": {"recipients": {}},
        }
    )

    assert run(gateway, "send", "claude", "x", "--wait") == 0
    assert (capsys.readouterr().out, clock.slept) == ("hi\n", [0.3, 0.3])
    assert gateway.reconnects == 2


def test_the_default_patience_is_ten_minutes() -> None:
    assert call_of("send", "a", "b").args.timeout == 600.0
