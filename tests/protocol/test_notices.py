"""Every notice has a code, and programs decide by it."""

import ast
import re
from functools import cache
from pathlib import Path
from string import Formatter
from zlib import crc32

import pytest

from csp.protocol.enums import NoticeKind
from csp.protocol.events import NoticePosted, decode_event, encode_event
from csp.protocol.notices import HEADINGS, NoticeCode, notice_entries
from csp.protocol.session_parts import EndReason
from csp.room.sessions.modes import build_catalogue
from tests.room.playing import Play

# One worker reads the sources, once for all tests.
pytestmark = pytest.mark.xdist_group("notices")

CSP = Path(__file__).parents[2] / "csp"
SOURCES = [path for path in sorted(CSP.rglob("*.py")) if path != CSP / "protocol" / "notices.py"]
#: Methods that look for a text in another one.
READERS = {"startswith", "removeprefix", "partition", "split", "match", "search", "compile"}
#: Parameters that a notice carries beside those of its text.
MORE = {NoticeCode.CONTROL_EXPIRED: {"message"}, NoticeCode.TURN_OBSTRUCTED: {"reason"}}


def fields(code: NoticeCode) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(code.template) if name}


@cache
def nodes() -> tuple[tuple[str, ast.AST], ...]:
    """Return every node of the sources with its place; the tree is read once for all tests."""
    return tuple(
        (f"{path.relative_to(CSP)}:{getattr(node, 'lineno', 0)}", node)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call | ast.Compare | ast.match_case)
    )


def test_notices_are_emitted_with_their_code() -> None:
    """Only the draft makes the event, and it takes words that have a code."""
    made = [
        place
        for place, node in nodes()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "NoticePosted"
    ]

    assert [place.partition(":")[0] for place in made] == ["room/room_draft.py"]


def test_every_notice_is_given_the_parameters_of_its_text() -> None:
    used, wrong = set(), []
    for place, node in nodes():
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if not (isinstance(called, ast.Attribute) and ast.unparse(called.value) == "NoticeCode"):
            continue
        code = NoticeCode[called.attr]
        used.add(code)
        if {keyword.arg for keyword in node.keywords} != fields(code) | MORE.get(code, set()):
            wrong.append(place)

    assert wrong == []
    looked_up = {NoticeCode[f"ENDED_{reason.name}"] for reason in EndReason}
    looked_up |= {NoticeCode[kind.name] for kind in NoticeKind}
    assert set(NoticeCode) == used | looked_up


@pytest.mark.parametrize("mode", ["debate", "consensus", "collaborate", "round_robin", "orchestrator"])
def test_code_and_parameters_say_what_the_text_says(mode: str) -> None:
    play = Play()
    play.start(mode, topic="{braces} and 100 %", rounds=1)
    for _ in range(9):
        for agent in list(play.session.turns):
            play.reply(agent, "VOTE: [A]\nREASON: it {is} good")
    posted = [decode_event(encode_event(event)) for event in play.all(NoticePosted)]

    assert len(posted) > 4
    for event in posted:
        assert isinstance(event, NoticePosted)
        assert NoticeCode(event.code)(**event.params).text == event.text  # type: ignore[call-arg]  # a lookup


def test_a_notice_of_an_old_journal_has_no_code() -> None:
    head = b'{"v":1,"type":"system","seq":1,"ts":1.0,"id":"e-1","sender":"system",'
    line = head + b'"target":"all","thread":"default","text":"Mode: DEBATE"'
    event = decode_event(b'%b,"crc":"%08x"}' % (line, crc32(line)))

    assert isinstance(event, NoticePosted)
    assert (event.code, event.params) == ("", {})


def test_the_catalogue_lists_every_notice() -> None:
    listed = {entry.id: entry for entry in build_catalogue().notices}

    assert list(listed) == [code.value for code in NoticeCode] == [entry.id for entry in notice_entries()]
    assert {entry.id for entry in listed.values() if entry.is_heading} == {code.value for code in HEADINGS}
    assert listed["your_turn"].text == "@{agent} - Your turn."


# --- nothing matches the words -------------------------------------------------------------------


def phrases() -> set[str]:
    """Return the fixed words of the notices, as far as they are more than a word or two."""
    chunks = {
        words.strip(" .;,()\n") for code in NoticeCode for words, *_ in Formatter().parse(code.template)
    }
    return {chunk for chunk in chunks if len(chunk) >= 5 and (" " in chunk or chunk.endswith(":"))}


def test_no_program_compares_a_text_with_the_words_of_a_notice() -> None:
    compared = []
    for place, node in nodes():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READERS:
            compared += [(place, one) for one in node.args]
        elif isinstance(node, ast.Compare):
            compared += [(place, one) for one in (node.left, *node.comparators)]
    texts = [
        (place, inner.value)
        for place, one in compared
        for inner in ast.walk(one)
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str)
    ]
    pages = [(path.name, path.read_text()) for path in sorted(CSP.glob("web/page/*.js"))]
    texts += [(name, pattern) for name, page in pages for pattern in re.findall(r"/\^.*?/[a-z]*[;.]", page)]
    known = phrases()

    assert len(known) > 60
    assert "- Your turn" in known
    assert [(place, phrase) for place, text in texts for phrase in known if phrase in text] == []


def test_no_program_looks_into_the_text_of_a_notice() -> None:
    """Where an event is known to be a notice, its text is shown and nothing else."""
    looks = []
    for place, node in nodes():
        if isinstance(node, ast.match_case) and "NoticePosted" in ast.unparse(node.pattern):
            inside = [node.guard, *node.body]
            texts = [one for part in inside if part for one in ast.walk(part)]
            looks += [place for one in texts if isinstance(one, ast.Attribute) and one.attr == "text"]
    page = (CSP / "web/page/message.js").read_text()

    assert looks == []
    assert re.findall(r"(?:\.test|\.match|\.startsWith|\.includes|=== ?\")\(?event\.text", page) == []


def test_no_program_reads_what_a_command_says_to_people() -> None:
    """Failures of csp commands travel as data: see csp.fast_start.failure_report."""
    readers = [
        place
        for place, node in nodes()
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in READERS
        and any(isinstance(one, ast.Constant) and "csp: " in str(one.value) for one in node.args)
    ]

    assert readers == []
