"""Talking to the room from the page."""

from functools import partial

from playwright.async_api import Page, expect

from tests.rooms import LiveRoom
from tests.waiting import wait_until
from tests.web.browser import Troubles
from tests.web.conftest import Enter
from tests.web.parts import messages, see_said, see_toast, write
from tests.web.puppet import Puppet


def _sent(room: LiveRoom) -> list[tuple[str, str]]:
    return [(item["target"], item["text"]) for item in messages(room, types="human_message")]


async def _sent_one(room: LiveRoom) -> tuple[str, str]:
    return (await wait_until(lambda: _sent(room), what="a message"))[-1]


async def test_a_message_goes_to_whom_the_composer_names(gateway: LiveRoom, page: Page) -> None:
    Puppet(gateway, "ada")
    Puppet(gateway, "bob")
    await page.wait_for_selector("#composer-target option[value=bob]", state="attached")
    await page.select_option("#composer-target", "bob")
    await write(page, "only for you")

    assert await _sent_one(gateway) == ("bob", "only for you")
    await see_said(page, "only for you")
    await expect(page.locator("#composer-text")).to_have_value("")


TYPED = {
    "hello": ("all", "hello"),
    "@ada hello": ("ada", "hello"),
    "@ADA: hello": ("ada", "hello"),
    "@all hello": ("all", "hello"),
    "//etc/hosts is wrong": ("all", "/etc/hosts is wrong"),
    "@@ada is a name": ("all", "@ada is a name"),
    "a line\nanother": ("all", "a line\nanother"),
}


async def test_what_is_typed_means_what_it_means_in_the_human_pane(gateway: LiveRoom, page: Page) -> None:
    Puppet(gateway, "ada")
    await page.wait_for_selector("#composer-target option[value=ada]", state="attached")
    for number, (typed, meant) in enumerate(TYPED.items()):
        await write(page, typed)
        sent = await wait_until(partial(_sent_at, gateway, number + 1), what=typed)
        assert sent == meant, typed


def _sent_at(room: LiveRoom, count: int) -> tuple[str, str] | None:
    sent = _sent(room)
    return sent[-1] if len(sent) == count else None


async def test_an_exclamation_mark_is_urgent(gateway: LiveRoom, page: Page) -> None:
    ada = Puppet(gateway, "ada")
    await write(page, "!ada now")

    assert (await ada.next("message"))["urgent"] is True
    await expect(page.locator(".message .mark")).to_have_text("urgent")


async def test_a_name_alone_aims(gateway: LiveRoom, page: Page) -> None:
    Puppet(gateway, "ada")
    await page.wait_for_selector("#composer-target option[value=ada]", state="attached")
    await write(page, "@ada")

    await expect(page.locator("#composer-target")).to_have_value("ada")
    assert _sent(gateway) == []


async def test_what_cannot_be_sent_is_given_back(gateway: LiveRoom, page: Page, troubles: Troubles) -> None:
    troubles.expect("404.*/line")
    await write(page, "@nobody hello")

    await see_toast(page, "nobody")
    await expect(page.locator("#composer-text")).to_have_value("@nobody hello")
    assert _sent(gateway) == []


async def test_an_unknown_command_is_not_sent(gateway: LiveRoom, page: Page, troubles: Troubles) -> None:
    troubles.expect("404.*/line")
    await write(page, "/dance")

    await see_toast(page, "Unknown command /dance.")
    await expect(page.locator("#composer-text")).to_have_value("/dance")
    assert _sent(gateway) == []


async def test_the_last_words_of_an_agent_are_put_in(gateway: LiveRoom, page: Page) -> None:
    ada = Puppet(gateway, "ada")
    Puppet(gateway, "bob")
    ada.say("the answer is $& 42")
    await write(page, "@bob what of {ada.last}?")

    assert await _sent_one(gateway) == ("bob", "what of the answer is $& 42?")


async def test_names_are_completed(gateway: LiveRoom, page: Page) -> None:
    Puppet(gateway, "ada")
    Puppet(gateway, "adele")
    await page.wait_for_selector("#composer-target option[value=adele]", state="attached")
    await page.type("#composer-text", "@ad")
    await expect(page.locator("#completion li")).to_have_count(2)
    await page.press("#composer-text", "ArrowDown")
    await page.press("#composer-text", "Tab")

    await expect(page.locator("#composer-text")).to_have_value("@adele ")
    await expect(page.locator("#completion")).to_be_hidden()


async def test_commands_are_completed_at_the_start_alone(page: Page) -> None:
    await page.type("#composer-text", "/exp")
    await expect(page.locator("#completion li b")).to_have_text("/export ")
    await page.fill("#composer-text", "")
    await page.type("#composer-text", "see /exp")

    await expect(page.locator("#completion")).to_be_hidden()


# --- how far a message has come ------------------------------------------------------------------


async def test_every_step_of_a_delivery_is_shown(gateway: LiveRoom, page: Page) -> None:
    ada = Puppet(gateway, "ada")
    await write(page, "@ada hello")
    message = (await ada.next("message"))["id"]
    tick = page.locator(".tick")
    await expect(tick).to_have_text("ada ○ queued")
    ada.deliver(message, "held", "draft")
    await expect(tick).to_contain_text("waits: draft (you have text in its input box)")
    await expect(page.locator("[data-agent=ada] .waiting")).to_contain_text(
        "draft (you have text in its input box)"
    )
    ada.deliver(message, "typed")
    await expect(tick).to_have_text("ada ✓ typed")
    ada.deliver(message, "confirmed")

    await expect(tick).to_have_text("ada ✓✓ confirmed")
    await expect(page.locator("[data-agent=ada] .waiting")).to_have_count(0)


async def test_a_failure_says_why_and_can_be_sent_again(gateway: LiveRoom, page: Page) -> None:
    ada = Puppet(gateway, "ada")
    await write(page, "@ada hello")
    ada.deliver((await ada.next("message"))["id"], "typed")
    ada.deliver(_id_of(gateway), "failed", "Enter was swallowed three times")
    await expect(page.locator(".tick")).to_have_text("ada ✗ failed: Enter was swallowed three times")
    await page.click(".ticks >> text=Send again")

    await wait_until(lambda: _sent(gateway) == [("ada", "hello"), ("ada", "hello")], what="the second one")


def _id_of(room: LiveRoom) -> str:
    return str(messages(room, types="human_message")[-1]["id"])


async def test_a_message_that_waits_can_be_cancelled(gateway: LiveRoom, page: Page) -> None:
    ada = Puppet(gateway, "ada")
    await write(page, "@ada hello")
    ada.deliver((await ada.next("message"))["id"], "held", "busy")
    await page.click(".ticks >> text=Cancel")

    await expect(page.locator(".tick")).to_have_text("ada – withdrawn")


async def test_old_messages_show_how_they_ended(gateway: LiveRoom, enter: Enter) -> None:
    ada = Puppet(gateway, "ada")
    gateway.gateway.post("/message", {"to": "ada", "content": "long ago"})
    ada.deliver((await ada.next("message"))["id"], "typed")
    ada.deliver(_id_of(gateway), "confirmed")
    page = await enter(gateway)

    await expect(page.locator(".tick")).to_have_text("ada ✓✓ confirmed")


# --- who is here ---------------------------------------------------------------------------------


async def test_who_comes_and_goes_is_told(gateway: LiveRoom, page: Page) -> None:
    Puppet(gateway, "ada")
    await see_said(page, "ada joined")
    await expect(page.locator("[data-agent=ada] .name")).to_have_text("ada")
    gateway.gateway.delete("/agents/ada")

    await see_said(page, "ada was removed")
    await expect(page.locator("[data-agent=ada]")).to_have_count(0)


async def test_a_state_has_a_word_everywhere(gateway: LiveRoom, page: Page) -> None:
    ada = Puppet(gateway, "ada")
    for state, word in (("idle", "idle"), ("busy", "working"), ("limited", "at its limit")):
        ada.report(state)
        await expect(page.locator("[data-agent=ada] .state")).to_have_text(word)
    ada.report("busy")

    await expect(page.locator("#busy")).to_contain_text("ada")
