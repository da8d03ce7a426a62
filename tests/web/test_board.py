"""The whiteboard on the page: written on, read live, searched, summed up, saved."""

from pathlib import Path
from typing import Any, Final

from playwright.async_api import Page, expect

from tests.rooms import LiveRoom
from tests.waiting import wait_until
from tests.web.modules import Parts
from tests.web.parts import begin, see_toast, write
from tests.web.puppet import Puppet


async def _open(page: Page) -> None:
    await page.click("#tabs [data-tab=board]")


def _notes(room: LiveRoom, **query: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = room.gateway.get("/board", **query)["items"]
    return items


async def test_a_note_is_written_on_the_page(gateway: LiveRoom, page: Page) -> None:
    await _open(page)
    await expect(page.locator("#board-state")).to_have_text("The board is empty.")
    await page.fill("#board-text", "the parser is **mine**")
    await page.fill("#board-tags", "parser, ours")
    await page.click("#board-add button")

    note = page.locator("#board-notes .note")
    await expect(note).to_contain_text("the parser is mine")
    await expect(note).to_contain_text("#parser")
    await expect(page.locator("#board-text")).to_have_value("")
    (kept,) = _notes(gateway)
    assert (kept["author"], kept["text"], kept["tags"]) == (
        "human",
        "the parser is **mine**",
        ["parser", "ours"],
    )


async def test_notes_of_others_come_by_themselves_and_do_nothing(gateway: LiveRoom, page: Page) -> None:
    await _open(page)
    ada = Puppet(gateway, "ada")
    ada.call("/board", {"text": "<img src=x onerror=window.pwned=1> look"})

    await expect(page.locator("#board-notes .note")).to_contain_text(
        "<img src=x onerror=window.pwned=1> look"
    )
    assert await page.evaluate("() => window.pwned") is None


async def test_the_board_is_searched(gateway: LiveRoom, page: Page) -> None:
    for text in ("the tokenizer fails on tabs", "lunch is at noon", "see parse_header_line in the log"):
        gateway.gateway.post("/board", {"text": text})
    await write(page, "/board parse_header_line")
    found = page.locator("#board-notes .note")
    await expect(found.first).to_contain_text("see parse_header_line in the log")
    await expect(found.first).to_contain_text("found by its exact name")
    await page.fill("#board-q", "tokenizers failing")
    await page.press("#board-q", "Enter")
    await expect(found.first).to_contain_text("the tokenizer fails on tabs")
    await page.fill("#board-q", "")
    await page.press("#board-q", "Enter")

    await expect(found).to_have_count(3)


async def test_the_board_of_one_session_alone_with_its_replies(gateway: LiveRoom, page: Page) -> None:
    gateway.gateway.post("/board", {"text": "a note of the room"})
    ada = Puppet(gateway, "ada")
    await page.wait_for_selector("#mode-agents input[value=ada]", state="attached")
    await begin(page, "single", "say something")
    await ada.take_turn("an answer for the board")
    await _open(page)
    notes = page.locator("#board-notes .note")
    await expect(notes).to_have_count(2)
    session = gateway.gateway.get("/sessions")["items"][0]["id"]
    await page.select_option("#board-session", session)

    await expect(notes).to_have_count(1)
    await expect(notes).to_contain_text("an answer for the board")
    await expect(notes).to_have_attribute("data-kind", "reply")


async def test_older_notes_are_reached(gateway: LiveRoom, page: Page) -> None:
    for number in range(55):
        gateway.gateway.post("/board", {"text": f"note {number}"})
    await _open(page)
    notes = page.locator("#board-notes .note")
    await expect(notes).to_have_count(50)
    await page.click("#board-older")
    await expect(notes).to_have_count(55)
    gateway.gateway.post("/board", {"text": "one more"})

    await expect(notes).to_have_count(56)
    await expect(notes.first).to_contain_text("one more")


async def test_an_agent_is_asked_for_a_summary(gateway: LiveRoom, page: Page) -> None:
    ada = Puppet(gateway, "ada")
    for text in ("one", "two"):
        gateway.gateway.post("/board", {"text": text})
    await _open(page)
    await page.wait_for_selector("#board-by option[value=ada]", state="attached")
    await page.click("#board-sum button")
    await see_toast(page, "ada was asked to sum up 2 notes")
    ada.say("one and two", replyTo=(await ada.next("message"))["id"])

    summary = page.locator("#board-notes .note[data-kind=summary]")
    await expect(summary).to_contain_text("one and two")
    await expect(summary).to_contain_text("stands for 2 notes")
    assert len((await wait_until(lambda: _notes(gateway, kind="summary")))[0]["stands_for"]) == 2


async def test_the_board_is_saved_as_a_file(gateway: LiveRoom, page: Page, tmp_path: Path) -> None:
    gateway.gateway.post("/board", {"text": "keep this"})
    await _open(page)
    await expect(page.locator("#board-notes .note")).to_have_count(1)
    async with page.expect_download() as download:
        await page.click("#board-export")
    done = await download.value
    await done.save_as(tmp_path / "saved")

    assert done.suggested_filename == "whiteboard-all.txt"
    assert (tmp_path / "saved").read_text() == "==> whiteboard/room/0000_human.txt <==\nkeep this\n"


# --- the module alone ----------------------------------------------------------------------------

_BEGIN: Final = """const { Board, openBoard } = await load("board"); const { showTab } = await load("tabs");
const note = (number, fields = {}) => ({ id: `n-${number}`, idx: number, author: "ada",
  text: `note ${number}`, tags: [], kind: "note", session: "room", ts: 1000, stands_for: [], ...fields });
const room = await makeRoom({ sessions: [{ id: "s/1", mode: "debate", topic: "tabs" }],
  agents: [{ id: "ada", online: true }, { id: "off", online: false }] });
new Board(room); room.sessionsChanged.tell(); room.agentsChanged.tell();
const rest = async () => { for (let i = 0; i < 6; i += 1) await turn(); };
const open = async (items) => { answers["/board"] = { items }; showTab("board"); await rest(); };
"""


async def test_a_board_that_nobody_looks_at_is_not_read(parts: Parts) -> None:
    got = await parts.run(
        _BEGIN
        + """room.noted.tell(); room.statusChanged.tell(); await rest(); const closed = asked.length;
        await open([note(1), note(2, { author: "human", kind: "reply", session: "s/1", tags: ["x"],
          stands_for: ["n-1"] })]);
        return [closed, asked[0][1], texts(".note .message-head").map((text) => text.replace(/no\\. .*/,
          "")), texts("#board-state"), $("#board-older").hidden, $("#board-sum").hidden,
          texts("#board-by option"), texts("#board-session option")]"""
    )

    assert got == [
        0,
        "/board?limit=50",
        ["youreplys/1#xstands for 1 note", "ada"],
        ["2 notes, the newest first"],
        True,
        False,
        ["ada"],
        ["All boards", "The room's own", "s/1 · debate tabs"],
    ]


async def test_the_board_is_read_again_when_the_connection_is_back(parts: Parts) -> None:
    got = await parts.run(
        "const real = window.setTimeout; window.setTimeout = (run, ms) => real(run, Math.min(ms, 1));"
        + _BEGIN
        + """await open([]); const empty = texts("#board-state");
        const wait = async () => { await new Promise((done) => real(done, 10));
        return asked.splice(0).length; }; await wait();
        room.status = "lost"; room.statusChanged.tell(); const lost = await wait(); room.status = "live";
        room.statusChanged.tell(); const back = await wait(); room.noted.tell();
        return [empty, lost, back, await wait()]"""
    )

    assert got == [["The board is empty."], 0, 1, 1]


async def test_notes_are_shown_apart_from_replies(parts: Parts) -> None:
    got = await parts.run(
        "const real = window.setTimeout; window.setTimeout = (run, ms) => real(run, Math.min(ms, 1));"
        + _BEGIN
        + """await open([]); asked.length = 0; const paths = () => asked.splice(0).map(([, path]) => path);
        $("#board-kind").value = "note"; $("#board-kind").dispatchEvent(new Event("change"));
        await until(() => asked.length); const listed = paths();
        openBoard("tabs"); await until(() => asked.some(([, path]) => path.includes("search")));
        return [[...new Set(listed)], paths().filter((path) => path.includes("search"))]"""
    )

    assert got == [["/board?limit=50&kind=note"], ["/board/search?q=tabs&limit=20&kind=note"]]


async def test_a_search_and_a_note_of_one_session(parts: Parts) -> None:
    got = await parts.run(
        "const real = window.setTimeout; window.setTimeout = (run, ms) => real(run, Math.min(ms, 1));"
        + _BEGIN
        + """await open([]); $("#board-session").value = "s/1";
        answers["/board/search"] = { items: [{ note: note(1), how: "exact" }, { note: note(2),
          how: "words" }, { note: note(3), how: "meaning" }] };
        openBoard("  tabs "); await until(() => texts(".note").length === 3);
        const path = asked.at(-1)[1]; const marks = texts(".note .mark").filter((mark) =>
          mark.startsWith("found")); const state = texts("#board-state");
        const older = $("#board-older").hidden;
        answers["/board/search"] = { items: [] }; openBoard("none");
        await until(() => texts(".note").length === 0); const none = texts("#board-state");
        asked.length = 0;
        $("#board-text").value = " a note "; $("#board-tags").value = " x, y ";
        $("#board-add").requestSubmit(); await until(() => !$("#board-text").value);
        const added = asked[0]; const cleared = $("#board-q").value; asked.length = 0;
        $("#board-text").value = "  "; $("#board-add").requestSubmit(); await rest();
        const blank = asked.filter(([method]) => method === "POST").length;
        statuses["/board"] = 507; $("#board-text").value = "kept"; $("#board-add").requestSubmit();
        await rest(); return [path, marks, state, older, none, added, cleared, blank,
          $("#board-text").value]"""
    )

    assert got == [
        "/board/search?q=tabs&limit=20&session=s%2F1",
        ["found by its exact name", "found by its words", "found by its meaning"],
        ["3 notes found, the best first"],
        True,
        ["No notes match."],
        ["POST", "/board", {"text": " a note ", "tags": ["x", "y"], "session": "s/1"}],
        "",
        0,
        "kept",
    ]


async def test_a_summary_and_a_file_of_one_session(parts: Parts) -> None:
    got = await parts.run(
        _BEGIN
        + """const files = []; URL.createObjectURL = (blob) => { files.push(blob); return "blob:x"; };
        const names = []; HTMLAnchorElement.prototype.click = function () { names.push(this.download); };
        await open([]); $("#board-session").value = "s/1";
        answers["/board/summarise"] = { stands_for: ["a"] };
        answers["/board/export"] = { files: [{ path: "p1", text: "t1" }, { path: "p2", text: "t2" }] };
        asked.length = 0;
        $("#board-sum").requestSubmit(); await rest(); $("#board-export").click(); await rest();
        return [asked.slice(0, 2), texts(".toast p"), names, await files[0].text()]"""
    )

    assert got == [
        [
            ["POST", "/board/summarise", {"by": "ada", "session": "s/1"}],
            ["GET", "/board/export?session=s%2F1", None],
        ],
        ["ada was asked to sum up 1 note"],
        ["whiteboard-s/1.txt"],
        "==> p1 <==\nt1\n\n==> p2 <==\nt2\n",
    ]


_HASTY: Final = "const real = setTimeout; window.setTimeout = (run, ms) => real(run, Math.min(ms, 1));"


async def test_older_notes_stay_above_the_newest_page_of_the_same_board(parts: Parts) -> None:
    got = await parts.run(
        _HASTY
        + _BEGIN
        + """const range = (from, to) => Array.from({ length: to - from }, (_, at) => note(from + at));
        const count = () => texts(".note").length; const seen = [];
        await open(range(11, 61)); await until(() => count() === 50); seen.push($("#board-older").hidden);
        answers["/board"] = { items: range(1, 11) }; asked.length = 0; $("#board-older").click();
        await until(() => count() === 60); seen.push(asked[0][1], texts(".toast").length);
        answers["/board"] = { items: range(12, 62) }; room.noted.tell(); await until(() => count() > 60);
        seen.push(count(), texts(".note .body")[0]);
        answers["/board"] = { items: [] }; $("#board-older").click(); await until(() => $(".toast"));
        seen.push(texts(".toast p"));
        answers["/board"] = { items: [note(30)] }; $("#board-session").value = "room";
        $("#board-session").dispatchEvent(new Event("change")); await until(() => count() < 60);
        return [...seen, count(), $("#board-older").hidden]"""
    )

    assert got == [
        *(False, "/board?limit=50&before=11", 0),
        *(61, "note 61", ["there is nothing older"], 1, True),
    ]


async def test_a_page_that_comes_after_a_search_began_is_not_shown(parts: Parts) -> None:
    got = await parts.run(
        _HASTY
        + _BEGIN
        + """const hold = () => { let go; const held = new Promise((done) => (go = done));
        return { held, go }; };
        const page = hold(); const hits = hold(); answers["/board"] = () => page.held;
        answers["/board/search"] = () => hits.held; showTab("board"); await rest(); openBoard("tabs");
        page.go({ items: [note(1)] }); await rest(); const early = texts(".note").length;
        hits.go({ items: Array.from({ length: 50 }, (_, at) => ({ note: note(at) })) });
        await until(() => texts(".note").length === 50); return [early, $("#board-older").hidden]"""
    )

    assert got == [0, True]


async def test_what_was_chosen_stays_chosen(parts: Parts) -> None:
    got = await parts.run(
        _BEGIN
        + """const [board, writer] = [$("#board-session"), $("#board-by")];
        board.value = "room"; room.sessions.push({ id: "s/2", mode: "debate" }); room.sessionsChanged.tell();
        room.agents = ["ada", "bob"].map((id) => ({ id, online: true })); room.agentsChanged.tell();
        writer.value = "bob"; room.agents.push({ id: "cy", online: true }); room.agentsChanged.tell();
        const kept = [board.value, writer.value, $("#board-sum").hidden];
        room.agents = []; room.agentsChanged.tell(); return [kept, $("#board-sum").hidden]"""
    )

    assert got == [["room", "bob", False], True]
