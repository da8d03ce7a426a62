"""The whiteboard on the page: written on, read live, searched, summed up, saved."""

from pathlib import Path
from typing import Any

from playwright.async_api import Page, expect

from tests.rooms import LiveRoom
from tests.waiting import wait_until
from tests.web.parts import begin, see_toast, write
from tests.web.puppet import Puppet


async def _open(page: Page) -> None:
    await page.click("#tabs [data-tab=board]")


def _notes(room: LiveRoom, **query: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = room.gateway.get("/board", **query)["items"]
    return items


async def test_a_note_is_written_on_the_page(gateway: LiveRoom, page: Page) -> None:
    await _open(page)
    await expect(page.locator("#board-state")).to_have_text("Nothing stands on this board yet.")
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
