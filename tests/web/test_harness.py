"""The tools of these tests see what they are meant to see."""

import re

import pytest
from playwright.async_api import Browser, Page

from tests.rooms import LiveRoom
from tests.waiting import wait_until
from tests.web.browser import Troubles
from tests.web.conftest import Axe

ADD = (
    "document.querySelector('#top').append(Object.assign(document.createElement('{tag}'), {{src: '{src}'}}))"
)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("console.error('oh no')", "oh no"),
        ("setTimeout(() => { throw new Error('lost') })", "uncaught: .*lost"),
        ("void Promise.reject(new Error('broken'))", "uncaught: .*broken"),
        ("void fetch('/nowhere')", "404"),
        ("try { document.body.innerHTML = '<b>' } catch {}", "TrustedHTML"),
        ("void fetch('http://evil.test/').catch(() => {})", "connect-src"),
        (ADD.format(tag="img", src="http://evil.test/x.png"), "img-src"),
    ],
)
async def test_a_complaint_of_a_page_is_seen(page: Page, troubles: Troubles, script: str, told: str) -> None:
    assert troubles.unexpected == []
    await page.evaluate(f"() => {{ {script} }}")
    await wait_until(lambda: any(re.search(told, text) for text in troubles.unexpected), what=told)
    # A policy tells twice: that it was broken, that the fetch failed.
    troubles.expect(f"{told}|violates")

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
    before = await axe(page)
    await page.evaluate(f"() => {{ {ADD.format(tag='img', src='/page/icon.svg')} }}")
    after = await axe(page)

    assert "image-alt" not in [item["id"] for item in before]
    assert [item["impact"] for item in after if item["id"] == "image-alt"] == ["critical"]
