import asyncio
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csp.journal.history import MAX_PAGE_BYTES, History, HistoryPage, Hit, Scanner
from csp.journal.history_query import HIDDEN_TYPES, Facets, HistoryQuery, matches
from csp.journal.search_index import SearchIndex
from csp.protocol.enums import AgentId, DeliveryState, MessageId
from csp.protocol.events import HISTORY_TYPES, HumanMessage, KnownEvent, decode_event, type_of
from tests.gateway.served import served
from tests.journal.making import commit, concerns, delivered, encoded, late, lines_to, noticed, opened, said

AGENTS = ("claude", "codex", "gemini", "human")


@pytest.fixture(autouse=True)
def _index_answers_small_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.journal.history._NEAR_BYTES", 0)
    monkeypatch.setattr("csp.journal.history._FAR_BYTES", 2000)
    monkeypatch.setattr("csp.journal.history._SCAN_BYTES", 1000)


@contextmanager
def history_of(
    folder: Path, events: Sequence[KnownEvent], *, indexed: int | None = None, cap: int = 1000
) -> Iterator[History]:
    """Open a history over `events`, of which the first `indexed` are in the index."""
    with opened(folder) as journal:
        commit(journal, encoded(events))
        index = SearchIndex(journal)
        if indexed != 0:
            index.catch_up(len(events) if indexed is None else indexed)
        history = History(journal, index, cap, concerns)
        history.load_recent()
        yield history
        index.close()


def seqs(page: HistoryPage) -> list[int]:
    return [decode_event(line).seq for line in page.lines]


def answers(events: Sequence[KnownEvent], query: HistoryQuery) -> list[int]:
    """Say by plain reading which events a query asks for, all pages of it."""
    return [
        event.seq
        for event in events
        if type_of(event) in query.types - HIDDEN_TYPES
        and (query.after is None or event.seq > query.after)
        and (query.before is None or event.seq < query.before)
        and query.session is None
        and (query.agent is None or query.agent in agents_of(event))
        and (query.audience is None or concerns(event, query.audience))
        and matches(event.text, query.q)
    ]


def agents_of(event: KnownEvent) -> tuple[str, ...]:
    return (event.sender, event.target, *getattr(event, "recipients", ()))


async def all_pages(history: History, query: HistoryQuery) -> list[int]:
    """Turn every page, backward or, with `after`, forward; return what was on them in order."""
    found: list[int] = []
    while True:
        page = await history.page(query)
        if query.after is None:
            found = seqs(page) + found
            if page.next is None:
                return found
            query = query._replace(before=page.next)
        else:
            found += seqs(page)
            if not page.lines:
                return found
            query = query._replace(after=page.next)


def mixed_events(count: int) -> list[KnownEvent]:
    chance = random.Random(4)
    events: list[KnownEvent] = []
    for seq in range(1, count + 1):
        kind = chance.random()
        if kind < 0.5:
            target = chance.choice([*AGENTS, "all"])
            events.append(
                said(
                    seq,
                    f"word{seq % 5} said",
                    sender=chance.choice(AGENTS),
                    target=target,
                    recipients=[target],
                )
            )
        elif kind < 0.6:
            events.append(noticed(seq, "word1 noticed"))
        elif kind < 0.65:
            events.append(late(seq, "word2 late"))
        else:
            events.append(delivered(seq, f"m-{seq - 1}"))
    return events


QUERIES = [
    HistoryQuery(),
    HistoryQuery(q="word3"),
    HistoryQuery(q="said word"),
    HistoryQuery(q="nothing"),
    HistoryQuery(agent=AgentId("codex")),
    HistoryQuery(audience=AgentId("gemini")),
    HistoryQuery(types=frozenset({"late"})),
    HistoryQuery(types=frozenset({"late", "system"}), q="word"),
    HistoryQuery(types=frozenset({"delivery", "base"})),
    HistoryQuery(types=HISTORY_TYPES | {"late"}, agent=AgentId("human"), q="word2"),
    HistoryQuery(session="s-1"),
]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(("cap", "indexed"), [(1, 0), (1, 60), (1, 120), (20, 60), (1000, 120)])
async def test_paging_yields_every_item_once(
    tmp_path: Path, query: HistoryQuery, cap: int, indexed: int
) -> None:
    events = mixed_events(120)
    with history_of(tmp_path, events, indexed=indexed, cap=cap) as history:
        for limit in (1, 7, 1000):
            small = query._replace(limit=limit)
            assert await all_pages(history, small) == answers(events, small)
            forward = small._replace(after=0)
            assert await all_pages(history, forward) == answers(events, forward)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(("cap", "indexed"), [(1, 60), (1000, 120)])
async def test_paging_through_long_items_yields_each_once(
    tmp_path: Path, query: HistoryQuery, cap: int, indexed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csp.journal.history.MAX_PAGE_BYTES", 700)
    events = mixed_events(120)
    with history_of(tmp_path, events, indexed=indexed, cap=cap) as history:
        assert await all_pages(history, query) == answers(events, query)
        assert await all_pages(history, query._replace(after=0)) == answers(events, query)


@pytest.mark.parametrize("cap", [1, 1000])
async def test_a_page_of_long_items_is_short_but_never_empty(tmp_path: Path, cap: int) -> None:
    long = "x" * (MAX_PAGE_BYTES // 3)
    events = [said(seq, long) for seq in range(1, 9)] + [said(9, long * 4), said(10, long)]
    with history_of(tmp_path, events, indexed=0, cap=cap) as history:
        newest = await history.page(HistoryQuery())
        huge = await history.page(HistoryQuery(before=10))
        older = await history.page(HistoryQuery(before=9))
        onwards = await history.page(HistoryQuery(after=0))

    assert [(seqs(page), page.next) for page in (newest, huge, older)] == [
        ([10], 10),
        ([9], 9),
        ([7, 8], 7),
    ]
    assert (seqs(onwards), onwards.next) == ([1, 2], 2)


async def test_a_page_between_two_seqs_is_bounded_by_both(tmp_path: Path) -> None:
    with history_of(tmp_path, [said(seq) for seq in range(1, 50)], cap=5) as history:
        page = await history.page(HistoryQuery(after=10, before=14))

        assert seqs(page) == [11, 12, 13]


async def test_the_newest_come_oldest_first(tmp_path: Path) -> None:
    with history_of(tmp_path, [said(seq) for seq in range(1, 100)]) as history:
        page = await history.page(HistoryQuery(limit=3))

        assert (seqs(page), page.next) == ([97, 98, 99], 97)


async def test_the_last_page_has_no_next(tmp_path: Path) -> None:
    with history_of(tmp_path, [said(seq) for seq in range(1, 4)], cap=2) as history:
        page = await history.page(HistoryQuery(limit=3))

        assert (seqs(page), page.next) == ([1, 2, 3], None)


async def test_reading_on_from_the_end_returns_to_the_same_place(tmp_path: Path) -> None:
    with history_of(tmp_path, [said(1)]) as history:
        page = await history.page(HistoryQuery(after=1))

        assert (page.lines, page.next) == ([], 1)


async def test_an_empty_history_has_an_empty_page(tmp_path: Path) -> None:
    with history_of(tmp_path, []) as history:
        assert await history.page(HistoryQuery()) == HistoryPage(lines=[], next=None)
        assert await history.page(HistoryQuery(q="x")) == HistoryPage(lines=[], next=None)


async def test_what_is_remembered_is_answered_without_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as journal:
        history = History(journal, SearchIndex(journal), 10, concerns)
        history.load_recent()
        for seq in range(1, 31):
            event = said(seq)
            (line,) = encoded([event])
            commit(journal, [line])
            history.remember(line, event)
        monkeypatch.setattr(history, "_from_disk", lambda query: pytest.fail("read the disk"))

        assert seqs(await history.page(HistoryQuery(limit=9))) == list(range(22, 31))
        assert seqs(await history.page(HistoryQuery(after=20, limit=4))) == [21, 22, 23, 24]
        assert seqs(await history.page(HistoryQuery(after=30))) == []


async def test_memory_and_disk_agree_while_events_come(tmp_path: Path) -> None:
    events = mixed_events(120)
    with opened(tmp_path) as journal:
        index = SearchIndex(journal)
        history = History(journal, index, 20, concerns)
        history.load_recent()
        for event in events:
            (line,) = encoded([event])
            commit(journal, [line])
            history.remember(line, event)
            query = HistoryQuery(limit=9, agent=AgentId("claude"))
            fresh = History(journal, index, 1, concerns)
            assert await history.page(query) == await fresh.page(query)
        index.close()


def remembered(history: History) -> list[int]:
    return [item.facets.seq for item in history._recent]


@pytest.mark.parametrize(("cap", "kept"), [(1, 1), (3, 3), (0, 1), (100, 10)])
async def test_no_more_items_are_remembered_than_the_cap(tmp_path: Path, cap: int, kept: int) -> None:
    events = [said(seq) for seq in range(1, 11)]
    with history_of(tmp_path / "loaded", events, cap=cap) as history:
        assert remembered(history) == list(range(11 - kept, 11))
        for event in (said(seq) for seq in range(11, 21)):
            history.remember(encoded([event])[0], event)

        assert remembered(history) == list(range(21 - min(2 * kept, cap or 1), 21))


async def test_the_cap_is_that_of_the_settings(tmp_path: Path) -> None:
    async with served(tmp_path / "room", history_cap=3) as room:
        await room.join("ada")
        for number in range(5):
            answer = await room.call("POST", "/message", {"to": "ada", "content": f"message {number}"})
            assert answer.status == 200

        assert len(remembered(room.gateway.history)) == 3
        await room.restart()
        assert len(remembered(room.gateway.history)) == 3


async def test_machinery_takes_no_place_in_the_memory(tmp_path: Path) -> None:
    events: list[KnownEvent] = [said(1), said(2), *(delivered(seq, "m-1") for seq in range(3, 9))]
    with history_of(tmp_path, events, cap=2) as history:
        assert remembered(history) == [1, 2]
        event = delivered(9, "m-2")
        history.remember(encoded([event])[0], event)

        assert (remembered(history), history._floor) == ([1, 2], 0)


async def test_bytes_of_what_is_forgotten_are_given_back(tmp_path: Path) -> None:
    with history_of(tmp_path, [said(seq) for seq in range(1, 5)], cap=2) as history:
        for event in (said(seq) for seq in range(5, 30)):
            history.remember(encoded([event])[0], event)

        assert history._recent_bytes == sum(len(line) for line in encoded([said(28), said(29)]))
        assert history._floor == 27


async def test_large_items_do_not_fill_the_memory(tmp_path: Path) -> None:
    events = [said(seq, "x" * 200_000) for seq in range(1, 61)]
    with history_of(tmp_path, events[:30], indexed=0) as history:
        for event in events[:30]:
            history.remember(encoded([event])[0], event)

        assert history._recent_bytes <= 4 << 20


async def test_an_unknown_event_is_shown_only_when_asked_for(tmp_path: Path) -> None:
    (line,) = encoded([noticed(1, "of tomorrow")])
    body = line.replace(b'"type":"system"', b'"type":"prophecy"')
    body = body[: body.rindex(b',"crc"')]
    with opened(tmp_path) as journal:
        commit(journal, [b'%b,"crc":"%08x"}' % (body, crc32(body))])
        index = SearchIndex(journal)
        index.catch_up()
        history = History(journal, index, 5, concerns)
        history.load_recent()
        asked = HistoryQuery(types=frozenset({"prophecy"}), q="tomorrow")

        assert (await history.page(HistoryQuery())).lines == []
        assert len((await history.page(asked)).lines) == 1
        assert (await history.page(asked._replace(audience=AgentId("claude")))).lines == []
        index.close()


async def test_items_under_much_machinery_are_not_read_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = 0
    check = Scanner.check

    def counting(scanner: Scanner, line: bytes) -> Hit | None:
        nonlocal read
        read += 1
        return check(scanner, line)

    monkeypatch.setattr(Scanner, "check", counting)
    events: list[KnownEvent] = [
        *(said(seq) for seq in range(1, 21)),
        *(delivered(seq, "m-1") for seq in range(21, 2000)),
        *(said(seq) for seq in range(2000, 2021)),
    ]
    with history_of(tmp_path, events, cap=1) as history:
        back = await history.page(HistoryQuery(limit=30, before=2005))
        on = await history.page(HistoryQuery(limit=30, after=5))

        assert seqs(back) == [*range(1, 21), *range(2000, 2005)]
        assert seqs(on) == [*range(6, 21), *range(2000, 2015)]
        assert read < 300


async def test_reading_on_looks_at_what_is_new_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with history_of(tmp_path, [said(seq) for seq in range(1, 1001)]) as history:
        seen: list[int] = []

        def noting(query: HistoryQuery, line: bytes, facets: Facets, concerns: object) -> bool:
            seen.append(facets.seq)
            return True

        monkeypatch.setattr("csp.journal.history.admits", noting)
        page = await history.page(HistoryQuery(after=997))

        assert seqs(page) == seen == [998, 999, 1000]


async def test_candidates_that_are_no_hits_cost_no_hit(tmp_path: Path) -> None:
    hits = {26, 27, 57, 200}
    events = [said(seq, "word") if seq in hits else late(seq, "word") for seq in range(1, 300)]
    with history_of(tmp_path, events, cap=1) as history:
        for query in (HistoryQuery(q="word", limit=10), HistoryQuery(q="word", limit=10, after=0)):
            assert await all_pages(history, query) == sorted(hits)


@pytest.mark.parametrize("indexed", [0, None])
async def test_a_damaged_line_is_never_shown(tmp_path: Path, indexed: int | None) -> None:
    events = [said(seq, "good words") for seq in range(1, 6)]
    with history_of(tmp_path, events, indexed=indexed, cap=1) as history:
        path = tmp_path / "journal.jsonl"
        data = path.read_bytes()
        place = data.index(b"good", data.index(b'"seq":3'))
        with path.open("r+b") as file:
            file.seek(place)
            file.write(b"food")

        assert seqs(await history.page(HistoryQuery(q="words"))) == [1, 2, 4, 5]
        assert seqs(await history.page(HistoryQuery())) == [1, 2, 4, 5]


# --- one message ---------------------------------------------------------------------------------


@pytest.mark.parametrize("indexed", [0, 3, 200])
async def test_a_message_is_found_with_its_deliveries(tmp_path: Path, indexed: int) -> None:
    events: list[KnownEvent] = [
        said(1, message_id="mine"),
        delivered(2, "mine", DeliveryState.TYPED),
        said(3, 'mentions "mine" and m-1', message_id="MINE"),
        *(said(seq) for seq in range(4, 100)),
        delivered(100, "mine"),
    ]
    with history_of(tmp_path, events, indexed=indexed) as history:
        found = await history.find(MessageId("mine"))
        assert found is not None
        assert found.event == events[0]
        assert found.line == encoded(events)[0]
        assert [step.seq for step in found.deliveries] == [2, 100]
        assert await history.find(MessageId("m-1")) is None
        assert await history.find(MessageId("nobody's")) is None
        assert await history.find(MessageId("\udc80")) is None


# --- against plain reading -----------------------------------------------------------------------

ATOMS = [
    *(
        "foo",
        "foobar",
        "fooz",
        "FOO",
        "bar",
        "b",
        "snake_case",
        "x1",
        "42",
        "Über",
        "straße",
        "STRASSE",
        "ſ",
        "K",
    ),
    *("漢字", "漢", "字漢", "かな", "한글", "👍", "👍🏽", "👨‍👩‍👧", "é", "e\u0301", "ﬁ", "ΟΔΟΣ", "ς", "İ"),
    *(
        "->",
        "::",
        ".",
        "c++",
        "#",
        '"',
        "'",
        "\\",
        "*",
        "(",
        ")",
        "%",
        "\x00",
        "\x1b[0m",
        "\x7f",
        "\ue000",
        "_",
    ),
    *(" ", " ", " ", "\n", "\t", "\u3000", "\u2028", "\x85", "AND", "OR", "NOT", "NEAR", "^", "{", "}"),
]
texts = st.lists(st.sampled_from(ATOMS), min_size=1, max_size=12).map("".join)
questions = st.lists(st.sampled_from(ATOMS), min_size=1, max_size=3).map("".join)


def search_and_compare(data: list[str], asked: list[str], indexed: int) -> None:
    """Ask a history of these texts for each of the questions; compare with plain reading."""
    events = [
        said(seq, text, sender=AGENTS[seq % 4], target=AGENTS[seq % 3]) for seq, text in enumerate(data, 1)
    ]
    # A part of some text is a likelier hit than anything made up.
    asked += [text[1:4] for text in data[:4]]
    with (
        tempfile.TemporaryDirectory() as folder,
        history_of(Path(folder), events, indexed=indexed) as history,
    ):
        for q in asked:
            for query in (
                HistoryQuery(q=q, limit=3),
                HistoryQuery(q=q, agent=AgentId("codex")),
                HistoryQuery(q=q, after=1, limit=2, audience=AgentId("human")),
            ):
                expected = answers(events, query)
                assert asyncio.run(all_pages(history, query)) == expected, q


many_texts = st.lists(texts, min_size=1, max_size=12)
many_questions = st.lists(questions, min_size=1, max_size=6)


@settings(max_examples=20)
@given(data=many_texts, asked=many_questions, indexed=st.integers(0, 12))
def test_searches_agree_with_plain_reading(data: list[str], asked: list[str], indexed: int) -> None:
    search_and_compare(data, asked, indexed)


@pytest.mark.full
@settings(max_examples=200)
@given(data=many_texts, asked=many_questions, indexed=st.integers(0, 12))
def test_every_search_agrees_with_plain_reading(data: list[str], asked: list[str], indexed: int) -> None:
    search_and_compare(data, asked, indexed)


@pytest.mark.parametrize(
    "q", ["\udc80", "foo \udfff", "漢\udc80", " ".join(f"w{n}->x" for n in range(500)), "x" * 9000, '"' * 50]
)
async def test_no_question_harms_the_index(tmp_path: Path, q: str, caplog: pytest.LogCaptureFixture) -> None:
    with history_of(tmp_path, [said(seq) for seq in range(1, 9)]) as history:
        page = await history.page(HistoryQuery(q=q))
        odd = await history.page(HistoryQuery(agent=AgentId("\udc80 x"), session=" \x00"))

        assert page.lines == odd.lines == []
        assert caplog.text == ""


async def test_a_human_message_is_found_too(tmp_path: Path) -> None:
    event = HumanMessage(
        1, 1.0, MessageId("m-1"), AgentId("human"), AgentId("all"), "default", "Hallo", recipients=()
    )
    with history_of(tmp_path, [event]) as history:
        assert seqs(await history.page(HistoryQuery(q="hal", audience=AgentId("codex")))) == [1]


def test_recent_items_are_read_from_the_end_alone(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(40_000))
        history = History(journal, SearchIndex(journal), 100_000, concerns)
        history.load_recent()

        assert history._floor > 0
        assert len(history._recent) < 40_000
