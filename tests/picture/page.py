"""Takes the pictures of the page for the README: the demo room in a debate, by day and by night.

python -m tests.picture.page              # writes page-light.png and page-dark.png beside this file
"""

import asyncio
import subprocess
import tempfile
from pathlib import Path
from typing import Final, Literal

from playwright.async_api import Browser, Page, ViewportSize, async_playwright, expect

from tests.picture.record import CSP, HERE, PROJECT, environment
from tests.web.browser import launch
from tests.web.parts import begin, see_chip, write

SIZE: Final[ViewportSize] = {"width": 1360, "height": 850}
GOAL: Final = "Should we rewrite the parser, or repair it?"
Scheme = Literal["light", "dark"]
SCHEMES: Final[tuple[Scheme, ...]] = ("light", "dark")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="csp-picture-") as home:
        env = environment(Path(home))
        project = f"{home}/{PROJECT}"
        up = [str(CSP), "up", "--demo", "--detach"]
        subprocess.run(up, env=env, cwd=project, check=True, stdout=subprocess.DEVNULL)
        try:
            asyncio.run(_take(env, project))
        finally:
            subprocess.run([str(CSP), "down"], env=env, cwd=project, check=True)
    return 0


async def _take(env: dict[str, str], project: str) -> None:
    expect.set_options(timeout=60_000)
    async with async_playwright() as playwright:
        browser = await launch(playwright)
        page = await _open(browser, env, project, "light")
        await write(page, "@all what would you change first?")
        await page.wait_for_selector(".tick[data-state=confirmed] >> nth=2")
        await begin(page, "debate", GOAL, rounds=3, ballot=True)
        await see_chip(page, "Debate: round 2/3")
        pages = [(scheme, await _open(browser, env, project, scheme)) for scheme in SCHEMES]
        for scheme, shown in pages:
            await shown.wait_for_selector("#timeline rect.replied >> nth=3")
            await expect(shown.locator("#agent-list .agent")).to_have_count(3)
            await shown.screenshot(path=HERE / f"page-{scheme}.png")


async def _open(browser: Browser, env: dict[str, str], project: str, scheme: Scheme) -> Page:
    context = await browser.new_context(viewport=SIZE, color_scheme=scheme, reduced_motion="reduce")
    page = await context.new_page()
    web = [str(CSP), "web", "--no-open"]
    link = subprocess.run(web, env=env, cwd=project, check=True, capture_output=True, text=True).stdout
    await page.goto(link.strip())
    await page.wait_for_selector('body[data-room="open"][data-link="live"]')
    return page


if __name__ == "__main__":
    raise SystemExit(main())
