"""chat.js: the conversation follows what is said, unless somebody scrolls back."""

from typing import Final

from tests.web.modules import Parts

BEGIN: Final = """const { Chat } = await load("chat"); const room = await makeRoom(given ?? {});
const item = (seq, fields = {}) => ({ seq, id: `m${seq}`, ts: 1000 + seq, type: "agent_response",
  sender: "ada", target: "all", text: `text ${seq}`, thread: "default", ...fields });
const range = (from, to) => Array.from({ length: to - from }, (_, index) => item(from + index));
document.body.dataset.room = "open"; const scroller = $("#log-scroller");
scroller.style.cssText = "height: 300px; overflow: auto; display: block";
const bodies = () => texts("#log .body"); const chat = new Chat(room);
const show = async (items, around = null) => { answers["/history"] = { items }; await chat.load(around);
await frame(); };
const scrollTo = async (top) => { scroller.scrollTop = top; await frame(); await frame(); };
"""


async def test_the_newest_page_is_shown_and_what_is_said_comes_to_it(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await show([item(1), item(2, { type: "vote" }), item(3)]); room.said.tell(item(3));
        room.said.tell(item(4)); room.said.tell(item(4)); room.news.tell(item(5, { type: "joined" }));
        await frame();
        return [asked.map(([, path]) => path), bodies(), texts(".notice p"), $("#empty").hidden,
          $("#jump").hidden]"""
    )

    assert got == [["/history?limit=60"], ["text 1", "text 3", "text 4"], ["ada joined"], True, True]


async def test_an_empty_room_says_so(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await show([]); const before = $("#empty").hidden; room.said.tell(item(1)); await frame();
        return [before, $("#empty").hidden]"""
    )

    assert got == [False, True]


async def test_one_session_alone(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await show([item(1, { session_id: "s/1" })]);
        room.said.tell(item(2, { session_id: "other" })); room.said.tell(item(3));
        room.said.tell(item(4, { session_id: "s/1" })); room.news.tell(item(5, { type: "joined" }));
        await frame();
        return [asked[0][1], bodies(), texts(".notice p")]""",
        {"view": "s/1"},
    )

    assert got == ["/history?limit=60&session=s%2F1", ["text 1", "text 4"], []]


async def test_another_view_and_a_gap_load_it_again(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await show([item(1)]); asked.length = 0; room.viewChanged.tell(); room.gap.tell();
        await turn(); return asked.map(([, path]) => path)"""
    )

    assert got == ["/history?limit=60"] * 2


async def test_seals_are_broken_when_the_session_goes_on(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await show([]); for (const session_id of ["s",
          "x"]) room.said.tell(item(session_id === "s" ? 1 : 2, { sealed: true, session_id }));
        await frame(); const both = texts(".sealed").length;
        room.sessionEvent.tell({ type: "turn", session_id: "s" }); const turns = texts(".sealed").length;
        room.sessionEvent.tell({ type: "mode", session_id: "s" });
        return [both, turns, [...document.querySelectorAll(".sealed")].map((mark) => mark.dataset.session)]"""
    )

    assert got == [2, 2, ["x"]]


async def test_who_scrolls_back_is_left_there_and_told_how_much_is_new(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await show(range(1, 61)); answers["/history"] = { items: [] };
        const atEnd = scroller.scrollTop + scroller.clientHeight >= scroller.scrollHeight - 2;
        await scrollTo(scroller.scrollHeight / 2); const top = scroller.scrollTop;
        const jump = [$("#jump").hidden, $("#jump").textContent]; room.said.tell(item(61));
        room.said.tell(item(62)); await frame(); const kept = [scroller.scrollTop === top,
          $("#jump").textContent, bodies().length];
        $("#jump").click(); await frame(); await frame();
        return [atEnd, jump, kept, $("#jump").hidden,
          scroller.scrollTop + scroller.clientHeight >= scroller.scrollHeight - 2,
          $("#jump").textContent]"""
    )

    assert got == [
        True,
        [False, "To the newest ↓"],
        [True, "2 new messages ↓", 62],
        True,
        True,
        "To the newest ↓",
    ]


async def test_older_pages_are_fetched_at_the_top_until_there_are_none(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await show(range(100, 160)); asked.length = 0; answers["/history"] = { items: range(90, 100) };
        await scrollTo(0); await until(() => bodies().length === 70); await scrollTo(5); await scrollTo(0);
        return [asked.map(([, path]) => path), bodies()[0], scroller.getAttribute("aria-busy")]"""
    )

    assert got == [["/history?limit=60&before=100"], "text 90", "false"]


async def test_a_message_far_back_is_shown_among_its_neighbours(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await show(range(100, 160)); await show(range(1, 61), 30);
        answers["/history"] = { items: [] }; const found = $("#log .found")?.dataset.seq;
        const focused = document.activeElement.dataset.seq; const path = asked[1][1];
        const jump = $("#jump").hidden; room.said.tell(item(500)); await frame();
        const missed = [$("#jump").textContent, bodies().includes("text 500")];
        answers["/history"] = { items: range(450, 510) }; $("#jump").click();
        await until(() => bodies().includes("text 500")); await frame();
        return [path, found, focused, jump, missed, $("#jump").hidden]"""
    )

    assert got == [
        "/history?limit=60&before=60",
        "30",
        "30",
        False,
        ["1 new message ↓", False],
        True,
    ]


async def test_states_of_old_messages_are_asked_for_when_they_are_seen(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const sent = (seq) => item(seq, { recipients: ["bob"] });
        for (const seq of [1,
          60]) answers[`/messages/m${seq}`] = { recipients: { bob: { state: "confirmed" } } };
        await show([sent(1), ...range(2, 60), sent(60)]); answers["/history"] = { items: [] };
        await until(() => texts(".tick").length === 1);
        const asks = () => asked.map(([, path]) => path).filter((path) => path.startsWith("/messages"));
        const first = asks();
        await scrollTo(0); await until(() => texts(".tick").length === 2); room.said.tell(sent(61));
        room.moved.tell({ message: "m61", agent: "bob", state: "typed" });
        await scrollTo(scroller.scrollHeight); await until(() => texts(".tick").includes("bob ✓ typed"));
        return [first, asks(), texts(".tick")]"""
    )

    assert got == [
        ["/messages/m60"],
        ["/messages/m60", "/messages/m1"],
        ["bob ✓✓ confirmed", "bob ✓✓ confirmed", "bob ✓ typed"],
    ]


async def test_a_short_history_has_nothing_older(parts: Parts) -> None:
    got = await parts.run(
        BEGIN + """await show(range(1, 31)); await scrollTo(0); await scrollTo(9); return asked.length"""
    )

    assert got == 1


async def test_older_pages_come_one_by_one_and_leave_the_reader_where_he_is(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await show(range(100, 160)); asked.length = 0; let go;
        answers["/history"] = () => new Promise((done) => (go = done));
        await scrollTo(0); await scrollTo(9); await scrollTo(0); const once = asked.length;
        answers["/history"] = { items: range(30, 40) }; go({ items: range(40, 100) });
        await until(() => bodies().length === 120); await frame(); const top = scroller.scrollTop;
        await scrollTo(0); await until(() => bodies().length === 130);
        return [once, top > 900, asked.map(([, path]) => path)]"""
    )

    assert got == [1, True, ["/history?limit=60&before=100", "/history?limit=60&before=40"]]


async def test_only_so_many_messages_stay_on_the_page(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await show(range(1, 61)); for (let seq = 61; seq < 411; seq += 10) {
          for (const one of range(seq, seq + 10)) room.said.tell(one);
          await until(() => bodies().at(-1) === `text ${seq + 9}`);
        }
        return [bodies().length, bodies()[0]]"""
    )

    assert got == [400, "text 11"]


async def test_who_comes_back_to_the_end_has_missed_nothing_more(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await show(range(1, 61)); const words = () => $("#jump").textContent; const seen = [];
        const miss = async (seq) => { await scrollTo(scroller.scrollHeight / 2); room.said.tell(item(seq));
        await frame(); seen.push(words()); };
        await miss(61); await scrollTo(scroller.scrollHeight); seen.push($("#jump").hidden); await miss(62);
        answers["/history"] = { items: range(1, 61) }; room.viewChanged.tell();
        await until(() => $("#jump").hidden); await scrollTo(scroller.scrollHeight / 2);
        return [...seen, words()]"""
    )

    assert got == ["1 new message ↓", True, "1 new message ↓", "To the newest ↓"]


async def test_the_mark_of_what_was_found_goes_after_three_seconds(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const waits = []; const real = setTimeout; await show(range(100, 160));
        window.setTimeout = (run, ms) => (ms > 100 ? waits.push({ run, ms }) : real(run, ms));
        await show(range(1, 61), 30); const before = $("#log .found").dataset.seq;
        const [{ run, ms }] = waits; run(); return [before, ms, $("#log .found")]"""
    )

    assert got == ["30", 3000, None]


async def test_a_seal_that_is_broken_before_the_message_was_drawn(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await show([]); room.said.tell(item(1, { sealed: true, session_id: "s" }));
        room.sessionEvent.tell({ type: "mode", session_id: "s" }); await frame();
        return [bodies(), texts(".sealed")]"""
    )

    assert got == [["text 1"], []]


async def test_more_than_a_page_at_once_shows_the_newest_page_and_fetches_the_rest(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await show(range(1, 61)); for (const one of range(61, 200)) room.said.tell(one);
        room.news.tell(item(200, { type: "joined" })); await frame();
        const shown = [bodies()[0], bodies().at(-1), bodies().length, texts(".notice p"),
          $("#log .fresh"), $("#jump").hidden];
        answers["/history"] = { items: range(81, 141) }; asked.length = 0; await scrollTo(0);
        await until(() => bodies()[0] === "text 81");
        return [...shown, asked[0][1], bodies().length]"""
    )

    assert got == [
        *("text 141", "text 199", 59, ["ada joined"], None, True),
        *("/history?limit=60&before=141", 119),
    ]


async def test_a_flood_leaves_who_reads_further_up_where_he_is(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await show(range(1, 61)); await scrollTo(scroller.scrollHeight / 2);
        for (const one of range(61, 200)) room.said.tell(one); await frame();
        return [bodies()[0], bodies().length, $("#jump").textContent]"""
    )

    assert got == ["text 1", 60, "139 new messages ↓"]


async def test_a_click_waits_for_one_piece_of_a_flood_and_a_piece_is_one_page(parts: Parts) -> None:
    """Frames come when the test says so; what each of them adds to the page is counted."""
    got = await parts.run(
        """const frames = []; window.requestAnimationFrame = (run) => frames.push(run);
        const waits = []; window.setTimeout = (run, ms = 0) => waits.push({ run, ms });
        const { Room } = await load("room"); const room = new Room();
        answers["/health"] = { room: "den", seq: 0 };
        const { Chat } = await load("chat"); const { startKeys } = await load("keys");
        new Chat(room); startKeys(room); await room.open(); sockets[0].open(); let added = 0;
        const count = (list) => list.forEach(({ addedNodes }) => (added += addedNodes.length));
        const watch = new MutationObserver(count); watch.observe($("#log"), { childList: true });
        const recipients = Array.from({ length: 100 }, (_, index) => `agent-${index}`);
        for (let seq = 1; seq <= 5000; seq += 1) sockets[0].hear({ seq, id: `m${seq}`, ts: seq,
          type: "agent_call", sender: "ada", target: "all", text: `text ${seq}`,
          thread: "default", recipients });
        const sent = () => sockets[0].sent.filter(({ op }) => op === "stop").length;
        const most = { lines: 0, nodes: 0 }; const clicks = []; let pieces = 0; let total = 0;
        const isRight = () => most.lines <= 60 && most.nodes <= 3000;
        while (isRight() && (frames.length || waits.some(({ ms }) => ms < 1000))) {
          while (isRight() && frames.length) {
            frames.shift()(); pieces += 1; count(watch.takeRecords());
            most.lines = Math.max(most.lines, added); total += added; added = 0;
            most.nodes = Math.max(most.nodes, $("#log").querySelectorAll("*").length);
            const before = sent(); $("#allstop").click(); clicks.push(sent() - before);
          }
          for (const wait of waits.splice(0)) if (wait.ms < 1000) wait.run();
        }
        return [most, total <= 60 * (pieces + 1), total < 2500, new Set(clicks).size, clicks[0],
          texts("#log .body").at(-1)]"""
    )

    most, *rest = got
    assert most["lines"] <= 60
    assert most["nodes"] <= 3000
    assert rest == [True, True, 1, 1, "text 5000"]


async def test_a_line_marks_what_came_while_nobody_looked(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """let isAway = false; Object.defineProperty(document, "hidden", { get: () => isAway,
          configurable: true }); const away = (is) => { isAway = is;
          document.dispatchEvent(new Event("visibilitychange")); };
        const lines = () => [...document.querySelectorAll("#log > li")].map((line) =>
          line.matches(".unread") ? "new" : line.dataset.seq);
        const hear = async (...items) => { for (const one of items) room.said.tell(one);
          await until(() => lines().includes(String(items.at(-1).seq))); };
        await show([item(1)]); await hear(item(2)); const read = lines(); away(true);
        await hear(item(3, { sender: "human" })); const own = lines(); await hear(item(4));
          await hear(item(5));
        const unread = lines(); away(false); const back = lines(); await hear(item(6)); away(true);
        await hear(item(7)); const next = lines(); away(false); await hear(item(8, { sender: "human" }));
        return [read, own, unread, back, next, lines()]"""
    )

    unread = ["1", "2", "3", "new", "4", "5"]
    assert got == [
        ["1", "2"],
        ["1", "2", "3"],
        unread,
        unread,
        ["1", "2", "3", "4", "5", "6", "new", "7"],
        ["1", "2", "3", "4", "5", "6", "7", "8"],
    ]


async def test_a_line_marks_what_came_since_the_last_visit(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """room.name = "den"; localStorage.setItem("csp-seen-den", "2"); await show(range(1, 5));
        const line = $("#log .unread")?.nextElementSibling.dataset.seq;
        const seen = localStorage.getItem("csp-seen-den"); await show(range(1, 5));
        return [line, seen, $("#log .unread")]"""
    )

    assert got == ["3", "4", None]


async def test_the_arrows_go_from_message_to_message(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await show([item(1), item(2, { type: "system" }), item(3), item(4)]);
        const reachable = () => [...document.querySelectorAll("#log [tabindex='0']")].map((one) =>
          one.dataset.seq);
        const press = (key) => { document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key,
          bubbles: true })); return document.activeElement.dataset.seq; };
        const first = reachable(); $("#log [tabindex='0']").focus();
        const way = ["ArrowUp", "ArrowUp", "ArrowUp", "ArrowDown"].map(press); const there = reachable();
        room.said.tell(item(5)); await until(() => bodies().length === 4); const stays = reachable();
        document.activeElement.blur(); room.said.tell(item(6)); await until(() => bodies().length === 5);
        return [first, way, there, stays, reachable()]"""
    )

    assert got == [["4"], ["3", "1", "1", "3"], ["3"], ["3"], ["6"]]


async def test_a_message_that_is_here_is_shown_without_asking_for_it(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await show(range(1, 30)); asked.length = 0; await chat.show(5); const here = asked.length;
        const focused = document.activeElement.dataset.seq; answers["/history"] = { items: [item(90)] };
        await chat.show(90); return [here, focused, asked.map(([, path]) => path)[0]]"""
    )

    assert got == [0, "5", "/history?limit=60&before=120"]
