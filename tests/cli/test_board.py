"""The tests of csp board against a real gateway."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from csp.cli.board import note_head
from csp.errors import Broken
from tests.cli.recording import Recorded
from tests.cli.recording import run as run_recorded
from tests.forks import run
from tests.rooms import LiveRoom


class Shell:
    """One user in the directory of a room."""

    def __init__(self, room: LiveRoom) -> None:
        self.room = room

    def __call__(self, *words: str, stdin: str | bytes = "") -> tuple[int, str, str]:
        done = run(["board", *words], self.room.dir, os.environ | self.room.env, stdin)
        return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def csp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with LiveRoom(tmp_path_factory.mktemp("cli")) as live:
        yield Shell(live)


def test_note_is_written_found_shown_and_exported(csp: Shell, tmp_path: Path) -> None:
    assert csp() == (0, "", "the board is empty; add a note with: csp board add TEXT\n")
    code, out, _ = csp("add", "the parser", "keeps tabs", "--tag", "parser,style", "--id", "own-1")
    note = out.strip()
    assert (code, note.startswith("n-")) == (0, True)
    assert csp("add", "again", "--id", "own-1")[1].strip() == note
    assert csp("add", "-", stdin="from stdin\nin two lines")[0] == 0

    code, out, said = csp("search", "parsers", "--tag", "style", "--limit", "5")
    assert (code, "room/0000 human #parser #style: the parser keeps tabs  (words " in out) == (0, True)
    assert "1 result" in said
    found = json.loads(csp("search", "parser", "--rerank", "--json")[1])
    assert found["items"][0]["note"]["id"] == note

    assert csp("show", note)[1].endswith("#parser #style\nthe parser keeps tabs\n")
    assert "from stdin\n    in two lines" in csp("show")[1]
    assert json.loads(csp("show", "--json")[1])["items"][0]["id"] == note

    code, out, said = csp("export", str(tmp_path / "notes"))
    assert (code, said) == (0, "wrote 2 notes\n")
    assert (tmp_path / "notes/whiteboard/room/0000_human.txt").read_text() == "the parser keeps tabs"
    assert len(json.loads(csp("export", "--json")[1])["files"]) == 2


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("ad",), 2, "unknown form 'ad' of board"),
        (("add",), 2, "expected text to write"),
        (("search",), 2, "expected words to search for"),
        (("search", " "), 2, "expected words to search for"),
        (("show", "n-1", "n-2"), 2, "csp board show does not accept 'n-2'"),
        (("show", "--by", "x"), 2, "csp board show does not accept --by"),
        (("show", "n-99999"), 1, "unknown note 'n-99999'"),
        (("show", "export"), 1, "unknown note 'export'"),
        (("show", "summarise"), 1, "unknown note 'summarise'"),
        (("add", "x", "--session", "s-99999"), 1, "unknown session 's-99999'"),
        (("summarise",), 2, "expected --by AGENT"),
        (("summarise", "--by", "nobody"), 1, "unknown agent 'nobody'"),
        (("export", "/dev/null"), 2, "cannot write"),
    ],
)
def test_mistake_is_told_in_a_sentence(csp: Shell, words: tuple[str, ...], code: int, said: str) -> None:
    csp("add", "something", "--id", "some-1")
    done = csp(*words)

    assert (done[0], said in done[2], "Traceback" in done[2]) == (code, True, False), done


def test_stdin_must_be_text(csp: Shell) -> None:
    code, _, said = csp("add", "-", stdin=b"\xff\xfe")

    assert (code, said) == (2, "csp: expected text in UTF-8 on stdin, got other bytes\n")


def test_summary_is_asked_for_and_put_on_the_board(csp: Shell) -> None:
    gateway = csp.room.gateway
    token = gateway.post("/register", {"agentId": "scribe"})["token"]
    csp("add", "something to sum up")
    code, _, said = csp("summarise", "--by", "scribe")
    assert (code, said.startswith("asked scribe to sum up ")) == (0, True)

    from csp.http_client import GatewayClient

    scribe = GatewayClient(gateway.url, token)
    asked = scribe.get("/inbox/scribe")["items"][-1]
    assert "something to sum up" in asked["text"]
    scribe.post("/agent-output", {"content": "all was said", "replyTo": asked["id"]})
    summary = gateway.get("/board?kind=summary")["items"][-1]
    assert (summary["text"], summary["author"]) == ("all was said", "scribe")
    assert f"scribe summary of {len(summary['stands_for'])} notes: all was said" in csp("show")[1]


# --- without a room ------------------------------------------------------------------------------

FILTERS = ("--session", "s-1", "--author", "ann", "--kind", "reply", "--tag", "t", "--limit", "3")
FILTERED = {"session": "s-1", "author": "ann", "kind": "reply", "tag": "t", "limit": 3}


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (
            ("add", "a", "b", "--session", "s-1", "--tag", "x,y", "--id", "own"),
            ("POST", "/board", {"text": "a b", "tags": ["x", "y"], "session": "s-1", "id": "own"}),
        ),
        (("add", "a"), ("POST", "/board", {"text": "a", "tags": []})),
        (("search", "a", "b", *FILTERS), ("GET", "/board/search", {"q": "a b", "rerank": 0, **FILTERED})),
        (("search", "a", "--rerank"), ("GET", "/board/search", {"q": "a", "rerank": 1})),
        (("show", *FILTERS), ("GET", "/board", FILTERED)),
        (("show", "n-3"), ("GET", "/board/n-3", {})),
        (("export", "--session", "s-1"), ("GET", "/board/export", {"session": "s-1"})),
        (
            ("summarise", "--by", "ann", "--session", "s-1"),
            ("POST", "/board/summarise", {"by": "ann", "session": "s-1"}),
        ),
        (("summarise", "--by", "ann"), ("POST", "/board/summarise", {"by": "ann"})),
    ],
)
def test_every_option_of_each_form_reaches_the_room(
    words: tuple[str, ...], asked: tuple[str, str, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    gateway = Recorded({asked[1]: {"ok": True}})

    assert run_recorded(gateway, "board", *words, "--json") == 0
    assert gateway.asked == [asked]
    assert capsys.readouterr().out == '{"ok": true}\n'


def test_an_export_stays_in_its_directory(tmp_path: Path) -> None:
    gateway = Recorded({"/board/export": {"files": [{"path": "../x.txt", "text": "x"}]}})
    with pytest.raises(Broken, match="outside"):
        run_recorded(gateway, "board", "export", "notes", cwd=tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_the_head_of_a_note_says_what_it_is() -> None:
    note = {"id": "n-1", "ts": 0.0, "tags": ["a"], "session": "s-1", "idx": 7, "author": "ann"}
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(0.0))

    assert note_head(note | {"kind": "note"}) == f"n-1 {clock} s-1/0007 ann #a"
    summary = note | {"kind": "summary", "stands_for": ["n-0", "n-2"]}
    assert note_head(summary) == f"n-1 {clock} s-1/0007 ann summary of 2 notes #a"
