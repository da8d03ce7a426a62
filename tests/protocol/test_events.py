"""The tests of the lines of a journal."""

import json
import sys
from typing import Any, get_args
from zlib import crc32

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from csp.errors import BadInput
from csp.protocol.enums import AgentId, AgentState, DeliveryState, JoinRole, MessageId, ParticipantKind
from csp.protocol.events import (
    AgentCall,
    AnyEvent,
    DeliveryMoved,
    HumanMessage,
    Joined,
    KnownEvent,
    NoticePosted,
    PrunedBase,
    StateChanged,
    Unknown,
    decode_event,
    encode_event,
    is_intact,
    type_of,
)
from csp.room.room_state import Room, dump, load
from tests.room.examples import EVENTS, HEAD

by_type = pytest.mark.parametrize("event", EVENTS, ids=type_of)


def sealed(body: bytes) -> bytes:
    """Return a line with the right checksum for whatever stands before it."""
    return b'%b,"crc":"%08x"}' % (body, crc32(body))


def fields_of(event: KnownEvent) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(encode_event(event))
    return fields


def line_of(fields: dict[str, Any]) -> bytes:
    rest = {key: value for key, value in fields.items() if key != "crc"}
    return sealed(json.dumps(rest, separators=(",", ":")).encode()[:-1])


# --- there and back ------------------------------------------------------------------------------


@by_type
def test_event_comes_back_as_it_went(event: KnownEvent) -> None:
    assert decode_event(encode_event(event)) == event


@by_type
def test_event_without_optional_fields_comes_back(event: KnownEvent) -> None:
    kind = type(event)
    required = kind.__struct_fields__[: len(kind.__struct_fields__) - len(kind.__struct_defaults__)]
    bare = kind(**{name: getattr(event, name) for name in required})

    assert decode_event(encode_event(bare)) == bare


def test_examples_have_every_kind() -> None:
    assert {type(event) for event in EVENTS} == set(get_args(KnownEvent))


@by_type
def test_line_is_one_line_of_plain_json(event: KnownEvent) -> None:
    line = encode_event(event)
    fields = json.loads(line)

    assert b"\n" not in line
    assert (next(iter(fields)), list(fields)[-1]) == ("v", "crc")
    assert (fields["v"], fields["type"], fields["seq"], fields["ts"]) == (1, type_of(event), 7, HEAD["ts"])
    assert "fïx".encode() in line


def test_line_has_the_names_of_the_wire() -> None:
    fields = fields_of(EVENTS[0])

    assert {"sender", "target", "thread", "text", "ts"} <= set(fields)
    assert (fields["replyTo"], fields["recipients"]) == ("m-3", ["codex", "gemini"])
    assert "reply_to" not in fields


def test_types_are_the_words_of_the_wire() -> None:
    assert [type_of(event) for event in EVENTS] == [
        *("human_message", "agent_call", "agent_response", "activity", "kept", "answer", "turn_signal"),
        *("query", "system", "mode", "turn", "usage", "vote", "note", "board"),
        *(
            "run.started",
            "run.prepared",
            "run.message",
            "run.phase",
            "run.waiting",
            "run.checked",
            "run.plan",
        ),
        *("run.finding", "run.defect", "run.ended", "run.delivered", "delivery", "joined", "left", "state"),
        *("control", "late", "call", "redacted", "pruned", "base"),
    ]


def test_base_carries_a_whole_room() -> None:
    room = Room(seq=5, ts=2.5, epochs={AgentId("claude"): 3})
    base = PrunedBase(
        5, 2.5, MessageId("e-5"), AgentId("system"), AgentId("all"), "", "", msgspec.Raw(dump(room))
    )
    back = decode_event(encode_event(base))

    assert isinstance(back, PrunedBase)
    assert load(bytes(back.state)) == room


TIMES = st.floats(allow_nan=False, allow_infinity=False)
WORDS = st.text()
HEADS: dict[str, st.SearchStrategy[Any]] = {
    "seq": st.integers(0, 2**53),
    "ts": TIMES,
    "id": WORDS,
    "sender": WORDS,
    "target": WORDS,
    "thread": WORDS,
    "text": WORDS,
}
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | TIMES | WORDS
ANY_EVENT: st.SearchStrategy[KnownEvent] = st.one_of(
    st.builds(NoticePosted, **HEADS),
    st.builds(
        HumanMessage,
        **HEADS,
        recipients=st.lists(WORDS).map(tuple),
        reply_to=st.none() | WORDS,
        hops=st.integers(0, 99),
        expires=st.none() | TIMES,
    ),
    st.builds(AgentCall, **HEADS, recipients=st.just(()), held=WORDS, urgent=st.booleans()),
    st.builds(
        *(DeliveryMoved,),
        **HEADS,
        message=WORDS,
        agent=WORDS,
        state=st.sampled_from(DeliveryState),
        reason=WORDS,
    ),
    st.builds(
        Joined,
        **HEADS,
        name=WORDS,
        kind=st.sampled_from(ParticipantKind),
        role=st.sampled_from(JoinRole),
        epoch=st.integers(1, 2**53),
        capabilities=st.none() | st.lists(WORDS) | st.dictionaries(WORDS, SCALARS),
    ),
    st.builds(
        StateChanged,
        **HEADS,
        state=st.none() | st.sampled_from(AgentState),
        until=st.none() | TIMES,
        paused=st.none() | st.booleans(),
    ),
)


@given(ANY_EVENT)
def test_any_event_comes_back_as_it_went(event: KnownEvent) -> None:
    line = encode_event(event)

    assert b"\n" not in line
    assert decode_event(line) == event


# --- damage --------------------------------------------------------------------------------------


@by_type
def test_checksum_catches_every_flipped_bit(event: KnownEvent) -> None:
    line = bytearray(encode_event(event))
    for at in range(len(line)):
        for bit in range(8):
            line[at] ^= 1 << bit
            assert not is_intact(bytes(line))
            line[at] ^= 1 << bit

    assert is_intact(bytes(line))


@by_type
def test_checksum_catches_every_cut(event: KnownEvent) -> None:
    line = encode_event(event)

    assert not any(is_intact(line[:size]) for size in range(len(line)))
    assert not any(is_intact(line[start:]) for start in range(1, len(line)))


@pytest.mark.parametrize("tail", [b"\n", b" ", b"\0", b"}"])
def test_line_with_something_after_it_is_not_intact(tail: bytes) -> None:
    assert not is_intact(encode_event(EVENTS[0]) + tail)


def test_damaged_line_is_bad_input() -> None:
    with pytest.raises(BadInput, match="checksum"):
        decode_event(encode_event(EVENTS[0]).replace(b"codex", b"codec", 1))


@given(st.binary())
def test_any_bytes_are_bad_input(line: bytes) -> None:
    with pytest.raises(BadInput):
        decode_event(line)


def read(line: bytes) -> AnyEvent | None:
    """Return the event of a line, or None for bad input; anything else is raised."""
    try:
        return decode_event(line)
    except BadInput:
        return None


@given(st.binary())
def test_any_bytes_with_a_checksum_are_an_event_or_bad_input(body: bytes) -> None:
    read(sealed(body))
    read(sealed(b'{"v":1,"type":"system",' + body))


#: Python 3.14 allows calls as deep as the stack has space for.
DEEP = 200_000 if sys.version_info < (3, 14) else 2_000_000
HEAD_LINE = b'{"v":1,"type":"%b","seq":1,"ts":1,"id":"","sender":"","target":"","thread":"","text":""'
NONSENSE: dict[str, bytes] = {
    "nothing": b"",
    "open object": b"{",
    "no object": b"\xff",
    "cut text": b'{"type":"x',
    "latin-1 in a known field": HEAD_LINE.replace(b'"text":""', b'"text":"\xfc"') % b"system",
    "latin-1 in the type": b'{"type":"\xff","seq":1,"ts":1',
    "lone surrogate": HEAD_LINE.replace(b'"text":""', b'"text":"\\ud800"') % b"system",
    "deep unknown type": HEAD_LINE % b"newer" + b',"x":' + b"[" * DEEP + b"]" * DEEP,
    "deep unknown field": HEAD_LINE % b"system" + b',"x":' + b"[" * DEEP + b"]" * DEEP,
    "deep base": HEAD_LINE % b"base" + b',"state":' + b"[" * DEEP + b"]" * DEEP,
    "deep and open": HEAD_LINE % b"newer" + b',"x":' + b"[" * DEEP,
    "nan": b'{"type":"system","seq":NaN,"ts":1',
    "huge seq": b'{"type":"newer","ts":1,"seq":' + b"9" * 5000,
    "huge time": b'{"type":"newer","seq":1,"ts":1e999',
    "fraction of a seq": b'{"type":"newer","seq":1.5,"ts":1',
    "no seq": b'{"type":"newer","ts":1',
    "no type": b'{"seq":1,"ts":1',
    "array": b'["newer",1,1',
}


@pytest.mark.parametrize("body", NONSENSE.values(), ids=NONSENSE)
def test_nonsense_with_a_checksum_is_bad_input_or_unknown(body: bytes) -> None:
    found = read(sealed(body))

    assert found is None or isinstance(found, Unknown)


# --- other versions ------------------------------------------------------------------------------


def test_type_of_a_newer_version_is_kept() -> None:
    event = decode_event(line_of(fields_of(EVENTS[0]) | {"type": "run.later", "plan": {"a": [1]}}))

    assert event == Unknown(
        7, 1700000000.25, "run.later", MessageId("x-7"), AgentId("claude"), AgentId("codex")
    )
    assert type_of(event) == "run.later"


def test_type_with_nothing_but_a_number_and_a_time_is_kept() -> None:
    assert decode_event(sealed(b'{"type":"x","seq":1,"ts":2')) == Unknown(1, 2.0, "x")


@by_type
def test_field_of_a_newer_version_is_passed_over(event: KnownEvent) -> None:
    assert decode_event(line_of(fields_of(event) | {"colour": {"r": 1}, "v": 2})) == event


ALIEN_VALUES: list[object] = [None, True, -1, 1.5, 2**70, "", "x", [], [1], {}, {"a": {}}]


@by_type
def test_alien_shape_is_kept_as_unknown_or_bad_input(event: KnownEvent) -> None:
    fields = fields_of(event)
    for name in fields.keys() - {"v", "crc", "type"}:
        for value in ALIEN_VALUES:
            found = read(line_of(fields | {name: value}))
            assert found is None or type_of(found) == type_of(event)

        missing = read(line_of({key: value for key, value in fields.items() if key != name}))
        assert missing is None or type_of(missing) == type_of(event)


def test_known_type_with_an_alien_field_counts_on() -> None:
    fields = fields_of(EVENTS[0]) | {"recipients": "codex"}
    event = decode_event(line_of(fields))

    assert isinstance(event, Unknown)
    assert (event.seq, event.type) == (7, "human_message")
