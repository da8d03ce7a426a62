"""The tests of every shape that crosses a border."""

import contextlib
import json
import sys
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csp.errors import BadInput, TooLarge
from csp.protocol import notes, requests, responses, review_messages, screen_frames, session_parts
from csp.protocol.codec import MAX_VALUES, check_text, encode, parse, parse_query, parse_request
from csp.protocol.enums import MAX_BODY_BYTES, MAX_TEXT_BYTES, DeliverKind, DeliveryState, ReportedState
from csp.protocol.notes import BoardBody, BoardParams, SearchParams, SummariseBody, is_note_id
from csp.protocol.requests import (
    Choice,
    CollaborateBody,
    CollaborationParams,
    ControlBody,
    ControlDoneBody,
    DeliveryBody,
    Dialog,
    EnterBody,
    HandoffBody,
    HistoryParams,
    InboxParams,
    LeaveBody,
    MessageBody,
    ModeBody,
    Op,
    OutputBody,
    PruneBody,
    RegisterBody,
    SessionActionBody,
    StartBody,
    StateBody,
    StopBody,
    ThreadParams,
    Usage,
    VoteBody,
)
from csp.protocol.responses import Deliver, DeliveryView, Done
from csp.protocol.review_messages import (
    MAX_ITEMS,
    MAX_REVISIONS,
    Finding,
    Plan,
    RunActionBody,
    RunBody,
    is_run_id,
)
from csp.protocol.screen_frames import MAX_LIVE_BYTES, ScreenView
from csp.protocol.session_parts import Collaboration, Limits

MODULES = (notes, requests, responses, review_messages, screen_frames, session_parts)
SHAPES = {name: kind for module in MODULES for name, kind in vars(module).items()}
BODIES = [kind for name, kind in SHAPES.items() if name.endswith("Body")] + [Op]
QUERIES = [kind for name, kind in SHAPES.items() if name.endswith("Params")]
#: Python 3.14 allows calls as deep as the stack has space for.
DEEP = 200_000 if sys.version_info < (3, 14) else 2_000_000


def message(**fields: object) -> bytes:
    return json.dumps({"to": "claude", "content": "hi"} | fields).encode()


# --- what is taken -------------------------------------------------------------------------------


def test_message_is_read_with_the_names_of_the_wire() -> None:
    body = parse(MessageBody, message(replyTo="m-3", urgent=True, id="a.b:c@d+e=f", thread="parser"))

    assert body == MessageBody(
        to="claude", content="hi", reply_to="m-3", urgent=True, id="a.b:c@d+e=f", thread="parser"
    )


def test_fields_of_a_newer_client_are_passed_over() -> None:
    assert parse(MessageBody, message(colour="red")) == MessageBody(to="claude", content="hi")


@pytest.mark.parametrize("text", ["a", "ü😀", "\0", "\n", "x" * MAX_TEXT_BYTES])
def test_text_is_taken_as_it_is(text: str) -> None:
    assert parse(MessageBody, message(content=text)).content == text


@pytest.mark.parametrize(
    "capabilities", [None, [], ["a", "b"], {"a": 1, "b": None, "c": "x", "d": 0.5, "e": True}]
)
def test_capabilities_are_words_or_a_flat_table(capabilities: object) -> None:
    data = json.dumps({"agentId": "claude", "capabilities": capabilities}).encode()

    assert parse(RegisterBody, data).capabilities == capabilities


def test_registration_has_defaults() -> None:
    body = parse(RegisterBody, b'{"agentId": "claude"}')

    assert (body.kind, body.role, body.capabilities) == ("cli", "agent", None)


# --- what is refused, and how --------------------------------------------------------------------

NOT_JSON: dict[str, bytes] = {
    "nothing": b"",
    "blank": b" \n",
    "word": b"hello",
    "cut": b'{"to": "claude", "content": "hi"',
    "cut in a text": b'{"to": "cla',
    "cut in an escape": b'{"to": "\\u00',
    "two objects": b"{}{}",
    "comment": b'{"to": "claude", "content": "hi"} // no',
    "single quotes": b"{'to': 'claude'}",
    "nan": b'{"to": "claude", "content": NaN}',
    "infinity": b'{"to": "claude", "content": -Infinity}',
    "lone surrogate": b'{"to": "claude", "content": "\\ud800"}',
    "lone low surrogate": b'{"to": "claude", "content": "\\udc00"}',
    "surrogates in wrong order": b'{"to": "claude", "content": "\\udc00\\ud800"}',
    "raw surrogate": b'{"to": "claude", "content": "\xed\xa0\x80"}',
    "latin-1": b'{"to": "claude", "content": "\xfc"}',
    "cut utf-8": b'{"to": "claude", "content": "\xf0\x9f\x98"}',
    "overlong utf-8": b'{"to": "claude", "content": "\xc0\xaf"}',
    "utf-16": '{"to": "claude"}'.encode("utf-16"),
    "bom": b'\xef\xbb\xbf{"to": "claude", "content": "hi"}',
    "control character": b'{"to": "claude", "content": "a\nb"}',
    "deep arrays": b"[" * DEEP,
    "deep objects": b'{"a":' * DEEP,
    "deep field": b'{"to": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "deep unknown field": b'{"x": ' + b"[" * DEEP + b"]" * DEEP + b', "to": "a", "content": "b"}',
}


@pytest.mark.parametrize("data", NOT_JSON.values(), ids=NOT_JSON)
def test_nonsense_is_bad_input(data: bytes) -> None:
    with pytest.raises(BadInput) as caught:
        parse(MessageBody, data)

    assert caught.value.hint


ALIEN: dict[str, tuple[type[msgspec.Struct], bytes, str]] = {
    "no recipient": (MessageBody, b'{"content": "hi"}', "`to`"),
    "no content": (MessageBody, b'{"to": "claude"}', "`content`"),
    "number for a text": (MessageBody, message(content=1), "$.content"),
    "huge number": (MessageBody, b'{"to": ' + b"9" * 5000 + b', "content": "hi"}', "$.to"),
    "null for a text": (MessageBody, message(to=None), "$.to"),
    "empty recipient": (MessageBody, message(to=""), "$.to"),
    "long recipient": (MessageBody, message(to="x" * 513), "$.to"),
    "empty text": (MessageBody, message(content=""), "$.content"),
    "word for a fact": (MessageBody, message(urgent="yes"), "$.urgent"),
    "number for a fact": (MessageBody, message(urgent=1), "$.urgent"),
    "blank in an id": (MessageBody, message(id="a b"), "$.id"),
    "line end in an id": (MessageBody, message(id="a\n"), "$.id"),
    "empty id": (MessageBody, message(id=""), "$.id"),
    "long id": (MessageBody, message(id="x" * 129), "$.id"),
    "slash in an id": (MessageBody, message(replyTo="a/b"), "$.replyTo"),
    "path for a thread": (MessageBody, message(thread="../x"), "$.thread"),
    "array for an object": (MessageBody, b"[]", "array"),
    "text for an object": (MessageBody, b'"hi"', "str"),
    "unknown kind": (RegisterBody, b'{"agentId": "a", "kind": "robot"}', "$.kind"),
    "role of the room": (RegisterBody, b'{"agentId": "a", "role": "room"}', "$.role"),
    "empty name": (RegisterBody, b'{"agentId": ""}', "$.agentId"),
    "nested capabilities": (RegisterBody, b'{"agentId": "a", "capabilities": {"x": {}}}', "$.capabilities"),
    "number as capability": (RegisterBody, b'{"agentId": "a", "capabilities": [1]}', "$.capabilities"),
    "huge capability": (
        *(RegisterBody, b'{"agentId": "a", "capabilities": {"x": 1e999}}'),
        "$.capabilities",
    ),
    "state of the room's own": (DeliveryBody, b'{"id": "m-1", "state": "withdrawn"}', "$.state"),
    "state before the first": (DeliveryBody, b'{"id": "m-1", "state": "queued"}', "$.state"),
    "long reason": (
        *(DeliveryBody, b'{"id": "m-1", "state": "held", "reason": "%b"}' % (b"x" * 2001)),
        "$.reason",
    ),
    "state a person sets": (StateBody, b'{"state": "paused"}', "$.state"),
    "time before time": (StateBody, b'{"state": "limited", "until": -1}', "$.until"),
    "negative tokens": (OutputBody, b'{"content": "a", "usage": {"input": -1}}', "$.usage.input"),
    "tokens past counting": (
        *(OutputBody, b'{"content": "a", "usage": {"output": 1%b}}' % (b"0" * 30)),
        "$.usage.output",
    ),
    "long task": (
        *(OutputBody, b'{"content": "a", "handoff": {"to": "b", "task": "%b"}}' % (b"x" * 501)),
        "$.handoff.task",
    ),
    "number for an op": (Op, b'{"op": 1}', "$.op"),
}


@pytest.mark.parametrize(("kind", "data", "field"), ALIEN.values(), ids=ALIEN)
def test_error_names_the_field(kind: type[msgspec.Struct], data: bytes, field: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse(kind, data)

    assert field in caught.value.message
    assert caught.value.message[0].islower()
    assert "openapi" in caught.value.hint


def test_a_text_over_the_limit_is_too_large() -> None:
    with pytest.raises(TooLarge) as caught:
        parse(MessageBody, message(content="x" * (MAX_TEXT_BYTES + 1)))

    assert caught.value.message == "content is over 262144 bytes"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
FIELDS = ["to", "content", "thread", "replyTo", "urgent", "id", "agentId", "capabilities", "kind", "role"]
FIELDS += ["turn", "handoff", "final", "usage", "state", "reason", "agent", "detail", "until", "note", "mode"]
FIELDS += [
    "topic",
    "choice",
    "before",
    "op",
    "ref",
    "activity",
    "local",
    "ending",
    "dialog",
    "screen",
    "text",
]


ANY_OBJECT = st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6)


def read_any(kind: type[msgspec.Struct], data: bytes) -> None:
    """Read a body; what can be read must come out the same when it is written and read again."""
    try:
        body = parse(kind, data)
    except BadInput:
        return

    assert parse(kind, encode(body)) == body


@settings(max_examples=20)
@given(data=st.binary(), value=ANY_OBJECT)
def test_anything_is_read_or_bad_input(data: bytes, value: dict[str, Any]) -> None:
    as_json = json.dumps(value).encode()
    for kind in BODIES:
        read_any(kind, data)
        read_any(kind, as_json)


@pytest.mark.full
@pytest.mark.parametrize("kind", BODIES, ids=lambda kind: kind.__name__)
@given(data=st.binary())
def test_any_bytes_are_read_or_bad_input(kind: type[msgspec.Struct], data: bytes) -> None:
    read_any(kind, data)


@pytest.mark.full
@pytest.mark.parametrize("kind", BODIES, ids=lambda kind: kind.__name__)
@given(value=ANY_OBJECT)
def test_any_object_is_read_or_bad_input(kind: type[msgspec.Struct], value: dict[str, Any]) -> None:
    read_any(kind, json.dumps(value).encode())


# --- queries -------------------------------------------------------------------------------------


def test_numbers_of_a_query_are_read_from_text() -> None:
    assert parse_query(InboxParams, {"after": "17", "wait": "0.5"}) == InboxParams(after=17, wait=0.5)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"limit": "0"}, "$.limit"),
        ({"limit": "ten"}, "$.limit"),
        ({"limit": "1001"}, "$.limit"),
        ({"after": "-1"}, "$.after"),
        ({"after": "9" * 5000}, "$.after"),
        ({"wait": "61"}, "$.wait"),
        ({"wait": "nan"}, "$.wait"),
        ({"types": "a,"}, "$.types"),
        ({"types": "../x"}, "$.types"),
    ],
)
def test_error_names_the_parameter(query: dict[str, str], field: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_query(HistoryParams, query)

    assert field in caught.value.message


ANY_QUERY = st.dictionaries(
    st.sampled_from(["limit", "after", "before", "agent", "session", "types", "q", "wait"]),
    st.text() | st.integers().map(str) | st.floats().map(str),
)


@given(query=ANY_QUERY)
def test_any_query_is_read_or_bad_input(query: dict[str, str]) -> None:
    for kind in QUERIES:
        with contextlib.suppress(BadInput):
            parse_query(kind, query)


# --- limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["x" * MAX_TEXT_BYTES, "ü" * (MAX_TEXT_BYTES // 2), "😀" * (MAX_TEXT_BYTES // 4)]
)
def test_text_of_256_kib_is_taken(text: str) -> None:
    assert len(text.encode()) == MAX_TEXT_BYTES == 256 * 1024

    check_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "x" * (MAX_TEXT_BYTES + 1),
        "ü" * (MAX_TEXT_BYTES // 2) + "x",
        "😀" * (MAX_TEXT_BYTES // 4) + "x",
        "x" + "😀" * (MAX_TEXT_BYTES // 4),
    ],
)
def test_text_over_256_kib_is_too_large(text: str) -> None:
    with pytest.raises(TooLarge, match="over 262144 bytes"):
        check_text(text)


def test_body_has_room_for_the_longest_text_in_escapes() -> None:
    escaped = b'{"to": "claude", "content": "%b"}' % (b"\\u0001" * MAX_TEXT_BYTES)

    assert len(escaped) <= MAX_BODY_BYTES
    assert len(parse(MessageBody, escaped).content) == MAX_TEXT_BYTES


# --- what is written -----------------------------------------------------------------------------


def test_deliver_is_written_with_the_names_of_the_wire() -> None:
    deliver = Deliver(
        id="m-3",
        seq=3,
        kind=DeliverKind.MESSAGE,
        sender="human",
        text="hi",
        urgent=False,
        state=DeliveryState.TYPED,
        reply_to="m-1",
    )

    assert json.loads(encode(deliver)) == {
        "id": "m-3",
        "seq": 3,
        "kind": "message",
        "from": "human",
        "text": "hi",
        "urgent": False,
        "state": "typed",
        "replyTo": "m-1",
    }


def test_what_is_not_known_is_not_written() -> None:
    assert encode(DeliveryView(state=DeliveryState.QUEUED, at=1.5)) == b'{"state":"queued","at":1.5}'
    assert encode(Done()) == b'{"success":true}'


def test_reported_states_are_delivery_states() -> None:
    assert set(ReportedState) <= set(DeliveryState)


def test_usage_of_nothing_is_nothing() -> None:
    assert parse(Usage, b"{}") == Usage(input=0, output=0)


# --- limits and defaults -------------------------------------------------------------------------

#: What a body cannot do without.
NEEDED: dict[type, dict[str, Any]] = {
    RegisterBody: {"agentId": "claude"},
    StartBody: {"name": "a", "provider": "anthropic", "model": "opus"},
    MessageBody: {"to": "all", "content": "hi"},
    OutputBody: {"content": "hi"},
    HandoffBody: {"to": "codex", "task": "go on"},
    StateBody: {"state": "idle"},
    Choice: {"label": "yes"},
    DeliveryBody: {"id": "m-1", "state": "typed"},
    VoteBody: {"label": "A"},
    ModeBody: {"mode": "debate"},
    BoardBody: {"text": "a note"},
    SummariseBody: {"by": "codex"},
    SearchParams: {"q": "apple"},
    PruneBody: {"before": 5},
    EnterBody: {"code": "x"},
    RunBody: {"goal": "mend it", "builder": "a", "reviewer": "b"},
    Plan: {"steps": ["one"]},
    Finding: {"severity": "minor", "text": "odd"},
    ScreenView: {"rows": [], "cols": 80},
}
LIMITS: list[tuple[type, str, list[object], list[object]]] = [
    (HistoryParams, "limit", [1, 1000], [0, 1001]),
    (HistoryParams, "wait", [0, 60], [-1, 60.5]),
    (HistoryParams, "after", [0, 2**53], [-1, 2**53 + 1]),
    (HistoryParams, "q", ["", "x" * 1000], ["x" * 1001]),
    (HistoryParams, "types", ["vote", "run.started,vote"], ["", "Vote", "vote,", "x" * 33]),
    (InboxParams, "wait", [0, 60], [-1, 60.5]),
    (CollaborationParams, "wait", [0, 60], [-1, 60.5]),
    (BoardParams, "limit", [1, 1000], [0, 1001]),
    (SearchParams, "limit", [1, 100], [0, 101]),
    (SearchParams, "rerank", [0, 1], [-1, 2]),
    (SearchParams, "q", ["x", "x" * 1000], ["", "x" * 1001]),
    (SearchParams, "since", [0, 1e11], [-1, 1.1e11]),
    (ThreadParams, "thread", ["a", "A.b_c-1", "x" * 64], ["", "a b", "x" * 65, "a\n"]),
    (BoardBody, "tags", [[], ["x"] * 16, ["x" * 64]], [["x"] * 17, ["a b"], ["a,b"], [""], ["x" * 65]]),
    (BoardBody, "session", ["room", "s-4"], ["s-", "s-x", "other"]),
    (RegisterBody, "agentId", ["a", "x" * 128], ["", "x" * 129]),
    (RegisterBody, "capabilities", [["x"] * 64, {"a": 1}], [["x"] * 65, {"a": []}, ["x" * 257]]),
    (StartBody, "key_env", ["", "A_1", "_a"], ["1A", "A-B", "A B"]),
    (MessageBody, "to", ["a", "x" * 512], ["", "x" * 513]),
    (MessageBody, "id", ["a", "A._:@+=-9", "x" * 128], ["", "a b", "x" * 129, "a\n"]),
    (HandoffBody, "task", ["x", "x" * 500], ["", "x" * 501]),
    (Dialog, "choices", [[], [{"number": 1, "label": "yes"}] * 30], [[{"number": 1, "label": ""}] * 31]),
    (
        Dialog,
        "choices",
        [[{"number": 99, "label": ""}]],
        [[{"number": 0, "label": ""}], [{"number": 100}]],
    ),
    (StateBody, "detail", ["", "x" * 2000], ["x" * 2001]),
    (StateBody, "until", [0, 1e11], [-1, 1.1e11]),
    (Usage, "input", [0, 2**53], [-1, 2**53 + 1]),
    (Usage, "cost_usd", [0, 1e9], [-0.1, 1.1e9]),
    (VoteBody, "label", ["A", "ab"], ["", "abc", "1", "A\n"]),
    (ModeBody, "rounds", [1, 1000], [0, 1001]),
    (ModeBody, "steps", [1, 1000], [0, 1001]),
    (Limits, "turns", [1, 1_000_000], [0, 1_000_001]),
    (Limits, "tokens", [1], [0]),
    (Limits, "minutes", [0.1, 1e6], [0, 1.1e6]),
    (Limits, "cost", [0.1, 1e9], [0, 1.1e9]),
    (CollaborateBody, "max_steps", [1, 10_000], [0, 10_001]),
    (CollaborateBody, "parallel", [1, 1000], [0, 1001]),
    (CollaborateBody, "timeout_per_step", [0.1, 86_400], [0, 86_401]),
    (CollaborateBody, "cost_limit_usd", [0.1, 1e9], [0, 1.1e9]),
    (CollaborateBody, "summarization_threshold", [2, 1_000_000], [1, 1_000_001]),
    (SessionActionBody, "minutes", [0.1, 1e6], [0, 1.1e6]),
    (ControlBody, "choice", [1, 99], [0, 100]),
    (PruneBody, "before", [1], [0]),
    (EnterBody, "code", ["x", "x" * 128], ["", "x" * 129]),
    (RunBody, "run_id", ["a", "2025-10-06.x_y", "x" * 64], ["", "A", "a..b", ".a", "x" * 65]),
    (RunBody, "test_timeout_s", [0.1, 7200], [0, 7201]),
    (RunBody, "max_revisions", [0, 100], [-1, 101]),
    (Plan, "steps", [["x"], ["x"] * 50], [[], ["x"] * 51, [""], ["x" * 2001]]),
    (Plan, "confidence", [0, 1], [-0.1, 1.1]),
    (Finding, "id", ["f-1", "f-999999"], ["f-0", "f-", "f-1000000"]),
    (ScreenView, "cols", [0, 10_000], [-1, 10_001]),
    (ScreenView, "rows", [[[]] * 1000], [[[]] * 1001]),
]


@pytest.mark.parametrize(
    ("kind", "field", "good", "bad"), LIMITS, ids=[f"{kind.__name__}.{field}" for kind, field, _, _ in LIMITS]
)
def test_a_field_takes_what_is_within_its_limits(
    kind: type, field: str, good: list[object], bad: list[object]
) -> None:
    for value in good:
        parse(kind, encode(NEEDED.get(kind, {}) | {field: value}))
    for value in bad:
        with pytest.raises(BadInput, match=r"\$\."):
            parse(kind, encode(NEEDED.get(kind, {}) | {field: value}))


DEFAULTS: list[tuple[type, dict[str, object]]] = [
    (RegisterBody, {"kind": "cli", "role": "agent", "capabilities": None}),
    (MessageBody, {"thread": None, "reply_to": None, "urgent": False, "id": None}),
    (OutputBody, {"final": False, "activity": False, "local": False, "ending": "done", "reason": ""}),
    (StateBody, {"detail": "", "until": None, "agent": None, "dialog": None}),
    (ModeBody, {"ballot": False, "respect_final": False, "soft_turns": False, "limits": Limits()}),
    (
        CollaborateBody,
        {"mode": None, "max_steps": None, "parallel": None, "timeout_per_step": None, "cost_limit_usd": None},
    ),
    (StopBody, {"thread": None, "all": False}),
    (LeaveBody, {"all": False}),
    (HistoryParams, {"limit": 50, "after": None, "before": None, "wait": 0, "types": None, "q": None}),
    (InboxParams, {"after": 0, "wait": 0}),
    (ThreadParams, {"thread": "default"}),
    (BoardParams, {"limit": 50, "after": None, "before": None, "session": None}),
    (SearchParams, {"limit": 10, "rerank": 0, "since": None, "until": None}),
    (RunBody, {"max_revisions": 3, "test_timeout_s": 600.0, "on_accept": "branch", "approve": False}),
    (RunActionBody, {"severity": "major", "plan": None, "decision": None}),
    (Usage, {"input": 0, "output": 0, "cost_usd": None, "estimated": False, "unpriced": False}),
    (Collaboration, {"thread": "default", "parallel": 1, "step_s": 300.0, "summarise_at": 50}),
    (Limits, {"turns": None, "tokens": None, "minutes": None, "cost": None}),
]


@pytest.mark.parametrize(("kind", "expected"), DEFAULTS, ids=[kind.__name__ for kind, _ in DEFAULTS])
def test_what_is_left_out_has_its_default(kind: type, expected: dict[str, object]) -> None:
    found: Any = parse(kind, encode(NEEDED.get(kind, {})))

    assert {name: getattr(found, name) for name in expected} == expected


def test_a_control_that_is_done_is_confirmed_unless_it_says_otherwise() -> None:
    assert parse(ControlDoneBody, b'{"id": "m-1"}').state is ReportedState.CONFIRMED


def test_the_sizes_of_what_travels() -> None:
    assert MAX_TEXT_BYTES == 256 * 1024
    assert MAX_BODY_BYTES == 6 * 256 * 1024 + 16 * 1024
    assert MAX_LIVE_BYTES == 512 * 1024
    assert (MAX_REVISIONS, MAX_ITEMS) == (3, 50)


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        *(("a", True), ("2025-10-06.x_y", True), ("x" * 64, True), ("lock", True)),
        *(("", False), ("a.", False), ("a.lock", False), ("a..b", False), (".a", False), ("A", False)),
        *(("x" * 65, False), ("a\n", False), ("a/b", False)),
    ],
)
def test_the_name_of_a_run_may_be_that_of_a_branch_and_a_folder(name: str, is_one: bool) -> None:
    assert is_run_id(name) is is_one


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("n-1", True), ("n-" + "9" * 15, True), ("n-", False), ("n-x", False), ("m-1", False)],
)
def test_the_id_of_a_note_has_a_form_of_its_own(text: str, is_one: bool) -> None:
    assert is_note_id(text) is is_one


# --- floods --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flood",
    [
        {"text": "x", "tags": ["a"] * (MAX_VALUES + 1)},
        {"text": "x", "more": {f"k{number}": 1 for number in range(MAX_VALUES + 1)}},
        {"text": "x", "more": ["\\", '"', ","] * MAX_VALUES},
    ],
)
def test_a_flood_of_values_is_refused_unread(flood: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="more than 20000 values"):
        parse_request(BoardBody, json.dumps(flood).encode())


def test_a_flood_is_read_no_further_than_to_its_last_allowed_value() -> None:
    once, often = (b"[" + b'"a",' * (times * MAX_VALUES) + b"1]" for times in (1, 15))
    costs = []
    for flood in (once, often):
        began = time.thread_time()
        for _ in range(5):
            with pytest.raises(BadInput, match="more than 20000 values"):
                parse_request(list, flood)
        costs.append(time.thread_time() - began)

    assert costs[1] < 5 * costs[0]


@pytest.mark.parametrize("text", [",", '",', "\\,", '\\",', ',"'])
def test_a_text_may_hold_any_number_of_commas(text: str) -> None:
    data = json.dumps({"text": text * (MAX_VALUES + 1)}).encode()

    assert parse_request(BoardBody, data).text == text * (MAX_VALUES + 1)
