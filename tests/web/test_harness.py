"""The tools of these tests see what they are meant to see."""

import re
from collections.abc import AsyncIterator
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from tests.rooms import LiveRoom, free_port
from tests.waiting import wait_until
from tests.web.browser import Troubles, enter, new_context
from tests.web.conftest import Axe
from tests.web.threaded import GatewayThread, ThreadedRoom

ADD = (
    "document.querySelector('#top').append(Object.assign(document.createElement('{tag}'), {{src: '{src}'}}))"
)

COMPLAINTS: Final = [
    ("console.error('oh no')", "oh no"),
    ("setTimeout(() => { throw new Error('lost') })", "uncaught: .*lost"),
    ("void Promise.reject(new Error('broken'))", "uncaught: .*broken"),
    ("void fetch('/nowhere')", "404"),
    ("try { document.body.innerHTML = '<b>' } catch {}", "TrustedHTML"),
    ("void fetch('http://evil.test/').catch(() => {})", "connect-src"),
    (ADD.format(tag="img", src="http://evil.test/x.png"), "img-src"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def any_page(
    browser: Browser, gateway_thread: GatewayThread, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Page]:
    """One page for all that only complain in it."""
    folder = tmp_path_factory.mktemp("harness") / "room"
    with ThreadedRoom(folder, gateway_thread, port=free_port(), is_cached=True) as room:
        context = await new_context(browser)
        yield await enter(context, room)
        await context.close()


@pytest.mark.parametrize(("script", "told"), COMPLAINTS)
async def test_a_complaint_of_a_page_is_seen(any_page: Page, script: str, told: str) -> None:
    troubles = Troubles()
    troubles.listen(any_page.context)
    await any_page.evaluate(f"() => {{ {script} }}")
    await wait_until(lambda: any(re.search(told, text) for text in troubles.unexpected), what=told)
    troubles.leave(any_page.context)
    # A policy tells twice, that it was broken and that the fetch failed; the second may come a test later.
    troubles.expect("|".join(["violates", *(told for _, told in COMPLAINTS)]))

    assert troubles.unexpected == []


async def test_one_context_knows_nothing_of_another(browser: Browser, gateway: LiveRoom, page: Page) -> None:
    await page.evaluate("() => localStorage.setItem('mark', 'x')")
    other = await browser.new_context()
    beside = await other.new_page()
    await beside.goto(gateway.url)
    kept = await beside.evaluate("() => [sessionStorage.length, localStorage.getItem('mark')]")
    await other.close()

    assert kept == [0, None]


async def test_axe_names_what_is_wrong(page: Page, axe: Axe) -> None:
    before = await axe(page, "image-alt")
    await page.evaluate(f"() => {{ {ADD.format(tag='img', src='/page/icon.svg')} }}")
    after = await axe(page)

    assert "image-alt" not in [item["id"] for item in before]
    assert [item["impact"] for item in after if item["id"] == "image-alt"] == ["critical"]
