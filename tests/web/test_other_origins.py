"""A page of another origin on the same machine can neither read the room nor act in it.

The attacker knows more than it could: the token of a page, the code of a link. Its page runs in the same
browser, on the next port, while a page of the room is open and let in.
"""

import contextlib
import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Final

import pytest
import pytest_asyncio
import requests
from playwright.async_api import Browser, BrowserContext, Page, Response
from playwright.async_api import Error as PlaywrightError

from csp.http_client import GatewayClient
from tests.rooms import LiveRoom, free_port
from tests.waiting import wait_until
from tests.web.browser import REBOUND, TIMEOUT_S, enter, link_to, new_context
from tests.web.foreign import ForeignSite
from tests.web.threaded import GatewayThread, ThreadedRoom

SECRET: Final = "the marzipan is in the cupboard"
BODY: Final = '{"to": "all", "content": "from the attacker"}'
NOTHING: Final = "nothing"

#: Each gets the gateway, a page's token, a link's code; each tells what it could read.
READS: Final = {
    "fetch": "(await fetch(url + '/history')).text()",
    "fetch of what needs no token": "(await fetch(url + '/health')).text()",
    "fetch of the description": "(await fetch(url + '/openapi.json')).text()",
    "fetch of the page": "(await fetch(url + '/')).text()",
    "fetch with cookies": "(await fetch(url + '/history', {credentials: 'include'})).text()",
    "fetch with the token": "(await fetch(url + '/history', {headers: {'X-Auth-Token': token}})).text()",
    "fetch as bearer": """(await fetch(url + '/history',
        {headers: {Authorization: 'Bearer ' + token}})).text()""",
    "opaque fetch": "(await fetch(url + '/history', {mode: 'no-cors'})).text()",
    "fetch by redirect": "(await fetch(url + '/', {redirect: 'follow', mode: 'no-cors'})).text()",
    "code changed for a token": "(await fetch(url + '/page/enter', {method: 'POST', body: enter})).text()",
    "event stream": """await new Promise((done) => {
        const stream = new EventSource(url + '/history');
        stream.onmessage = (event) => done(event.data);
        stream.onerror = () => { stream.close(); done('') };
    })""",
    "script": """await new Promise((done) => {
        const script = document.createElement('script');
        script.src = url + '/page/access.js';
        script.onload = () => done('ran'); script.onerror = () => done('');
        document.body.append(script);
    })""",
    "module": "Object.keys(await import(url + '/page/access.js')).join()",
    "script of json": """await new Promise((done) => {
        const script = document.createElement('script');
        script.src = url + '/health';
        script.onload = () => done('ran'); script.onerror = () => done('');
        document.body.append(script);
    })""",
    "image": """await new Promise((done) => {
        const image = new Image();
        image.onload = () => done('seen ' + image.width); image.onerror = () => done('');
        image.src = url + '/page/icon.svg';
    })""",
    "style": """await new Promise((done) => {
        const link = Object.assign(document.createElement('link'), {rel: 'stylesheet'});
        link.onload = () => done('styled'); link.onerror = () => done('');
        link.href = url + '/page/base.css'; document.head.append(link);
    })""",
    "WebSocket": """await new Promise((done) => {
        const socket = new WebSocket(url.replace('http', 'ws') + '/ws?after=0');
        socket.onopen = () => done('open'); socket.onclose = () => done('');
    })""",
    "WebSocket with the token": """await new Promise((done) => {
        const offer = ['csp', 'csp-token.' + token];
        const socket = new WebSocket(url.replace('http', 'ws') + '/ws?after=0', offer);
        socket.onopen = () => done('open'); socket.onclose = () => done('');
    })""",
    "sessionStorage": "sessionStorage.getItem('csp-token') ?? ''",
    "localStorage": "Object.keys(localStorage).join()",
    "cookies": "document.cookie",
}
#: These ask nothing of the gateway; they stand at the end.
OWN: Final = ("sessionStorage", "localStorage", "cookies")
#: Each tries to change something; whether it did is read off the journal.
WRITES: Final = {
    "POST": "await fetch(url + '/message', {method: 'POST', body})",
    "POST with the token": """await fetch(url + '/message',
        {method: 'POST', body, headers: {'X-Auth-Token': token}})""",
    "POST as text": """await fetch(url + '/message',
        {method: 'POST', body, mode: 'no-cors', headers: {'Content-Type': 'text/plain'}})""",
    "POST with cookies": """await fetch(url + '/stop',
        {method: 'POST', mode: 'no-cors', credentials: 'include'})""",
    "POST of a code": "await fetch(url + '/page/enter', {method: 'POST', body: enter, mode: 'no-cors'})",
    "POST to leave": """await fetch(url + '/page/leave',
        {method: 'POST', body: '{"all": true}', headers: {Authorization: 'Bearer ' + token}})""",
    "DELETE": "await fetch(url + '/agents/claude', {method: 'DELETE', headers: {'X-Auth-Token': token}})",
    "beacon": "navigator.sendBeacon(url + '/message', body)",
    "ping": """Object.assign(document.createElement('a'), {href: '#', ping: url + '/stop'}).click()""",
}
FORM: Final = """([action, kind, name]) => {
    const form = document.createElement("form");
    Object.assign(form, { action, method: "post", enctype: kind });
    form.append(Object.assign(document.createElement("input"), { name, value: '"}' }));
    document.body.append(form);
    form.submit();
}"""
FRAME: Final = """([tag, address]) => {
    const frame = document.createElement(tag);
    frame[tag === "object" ? "data" : "src"] = address;
    document.body.append(frame);
}"""


class Attack:
    """A foreign page beside one that is let in."""

    def __init__(self, page: Page, room: LiveRoom, token: str) -> None:
        self.page, self.room, self.token = page, room, token
        self.code = link_to(room).partition("#link=")[2]
        self.answers: list[int] = []
        self.journal = self._journal()

    async def begin(self, site: ForeignSite) -> None:
        """Open the attacker's page, then listen to what it is answered."""
        await self.page.goto(site.url)
        self.page.on("response", self._on_response)

    def end(self) -> None:
        self.page.remove_listener("response", self._on_response)

    def _journal(self) -> bytes:
        return (self.room.folder / "journal.jsonl").read_bytes()

    def _on_response(self, response: Response) -> None:
        if response.url.startswith((self.room.url, self.room.url.replace("127.0.0.1", REBOUND))):
            self.answers.append(response.status)

    async def run(self, script: str, page: Page | None = None, url: str = "") -> str:
        """Run a line of the attacker, here or in another page; return what it read, or `nothing`."""
        values = {
            "url": url or self.room.url,
            "token": self.token,
            "body": BODY,
            "enter": json.dumps({"code": self.code}),
        }
        return str(
            await (page or self.page).evaluate(
                f"""async ({{ url, token, body, enter }}) => {{
                    try {{ {script} }} catch {{ return "nothing" }}
                    return "nothing";
                }}""",
                values,
            )
            or NOTHING
        )

    def refused(self) -> int:
        """Return how many requests the gateway has refused as it refuses foreign pages."""
        told = requests.get(f"{self.room.url}/metrics", headers={"X-Auth-Token": self.room.token}, timeout=30)
        found = re.search(r'csp_http_requests_total{status="403"} (\d+)', told.text)
        return int(found[1]) if found else 0

    def check_untouched(self) -> None:
        """Fail if anything in the room is not as it was: its words, its page, the link nobody has used."""
        assert self._journal() == self.journal
        assert GatewayClient(self.room.url, self.token).get("/queue") == {"items": []}
        assert GatewayClient(self.room.url, "").post("/page/enter", {"code": self.code})["success"]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, gateway_thread: GatewayThread) -> Iterator[LiveRoom]:
    """One room for all attacks: each of them must leave it as it was."""
    folder = tmp_path_factory.mktemp("attacked") / "room"
    with ThreadedRoom(folder, gateway_thread, port=free_port()) as room:
        room.gateway.post("/message", {"to": "all", "content": SECRET})
        yield room


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def site() -> AsyncIterator[ForeignSite]:
    async with ForeignSite() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def context(browser: Browser, gateway: LiveRoom) -> AsyncIterator[BrowserContext]:
    """The browser of both pages; nobody listens to its complaints, for it says aloud whatever it forbids."""
    made = await new_context(browser)
    yield made
    await made.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def page(context: BrowserContext, gateway: LiveRoom) -> Page:
    """The page of the room, which is let in."""
    return await enter(context, gateway)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def foreign(context: BrowserContext) -> Page:
    """The page of the attacker."""
    return await context.new_page()


@pytest_asyncio.fixture(loop_scope="session")
async def attack(gateway: LiveRoom, page: Page, foreign: Page, site: ForeignSite) -> AsyncIterator[Attack]:
    token = await page.evaluate("() => sessionStorage.getItem('csp-token')")
    attack = Attack(foreign, gateway, token)
    await attack.begin(site)
    yield attack
    attack.end()


async def test_each_way_of_reading_works_for_our_own_page(attack: Attack, page: Page) -> None:
    """Without this a misspelt attack would look like a good defence."""
    got = {name: await attack.run(f"return {READS[name]}", page) for name in [*READS][: -len(OWN)]}

    # These need a token, which they do not send; or a script, which our own policy forbids.
    mute = ["event stream", "script", "script of json", "WebSocket"]
    assert [name for name, text in got.items() if text == NOTHING] == mute
    assert SECRET in got["fetch with the token"]


async def test_no_way_of_reading_reads_anything(attack: Attack) -> None:
    for name, script in READS.items():
        before = attack.refused()
        got = await attack.run(f"return {script}")

        assert (name, got) == (name, NOTHING)
        assert name in OWN or attack.refused() > before, name
    attack.check_untouched()


async def test_no_way_of_writing_changes_anything(attack: Attack) -> None:
    for name, script in WRITES.items():
        before = attack.refused()
        await attack.run(script)
        await wait_until(lambda before=before: attack.refused() > before, TIMEOUT_S, name)  # type: ignore[misc]

    attack.check_untouched()


async def test_a_form_posts_nothing(attack: Attack, site: ForeignSite) -> None:
    """As plain text, a form field with an equals sign in a string makes json of the whole body."""
    bodies = {
        "/message": '{"to": "all", "content": "from the attacker", "x": "',
        "/stop": '{"all": true, "x": "',
        "/page/enter": f'{{"code": "{attack.code}", "x": "',
        "/page/leave": '{"all": true, "x": "',
    }
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        for path, name in bodies.items():
            await attack.page.goto(site.url)
            async with attack.page.expect_navigation():
                await attack.page.evaluate(FORM, [attack.room.url + path, kind, name])

    assert attack.answers == [403] * 12
    attack.check_untouched()


@pytest.mark.parametrize("tag", ["iframe", "object", "embed"])
async def test_the_room_cannot_be_framed(attack: Attack, tag: str) -> None:
    paths = ("/", f"/?x#link={attack.code}", "/history", "/health")
    for path in paths:
        await attack.page.evaluate(FRAME, [tag, attack.room.url + path])
    await wait_until(lambda: len(attack.answers) >= len(paths), TIMEOUT_S, "the answers")

    assert set(attack.answers) == {403}
    for frame in attack.page.frames:
        # An object whose answer is an error loses its frame, perhaps just now.
        with contextlib.suppress(PlaywrightError):
            assert "composer" not in await frame.content()
    attack.check_untouched()


async def test_a_page_that_opens_ours_has_no_hold_on_it(attack: Attack, context: BrowserContext) -> None:
    async with context.expect_page() as opening:
        await attack.page.evaluate("(url) => { window.opened = window.open(url) }", link_to(attack.room))
    opened = await opening.value
    await opened.wait_for_selector('body[data-room="open"]')
    has_opener = await opened.evaluate("() => window.opener !== null")
    seen = await attack.page.evaluate(
        """() => {
            try { return [opened.closed, String(opened.document?.body?.innerText ?? "")] }
            catch (error) { return [opened.closed, error.name] }
        }"""
    )

    await opened.close()

    assert not has_opener
    # For the opener it is as if the window had been closed.
    assert seen[0] is True
    assert SECRET not in seen[1]


# --- names that were made to lead here -----------------------------------------------------------


async def test_a_rebound_name_gets_nothing(attack: Attack) -> None:
    rebound = attack.room.url.replace("127.0.0.1", REBOUND)
    for path in ("/", f"/?x#link={attack.code}", "/page/main.js", "/health", "/openapi.json", "/history"):
        await attack.page.goto(rebound + path)

        assert SECRET not in await attack.page.content()
    assert set(attack.answers) == {403}
    attack.check_untouched()


async def test_a_page_under_a_rebound_name_gets_nothing(attack: Attack, site: ForeignSite) -> None:
    """The attacker's own page first, then its name leads to us: the same site, as browsers see it."""
    await attack.page.goto(site.url.replace("127.0.0.1", REBOUND))
    rebound = attack.room.url.replace("127.0.0.1", REBOUND)
    for name, script in READS.items():
        before = attack.refused()
        got = await attack.run(f"return {script}", url=rebound)

        assert (name, got) == (name, NOTHING)
        assert name in OWN or attack.refused() > before, name
    attack.check_untouched()


@pytest.mark.parametrize("name", ["localhost.", "[::ffff:127.0.0.1]", "0.0.0.0"])
async def test_our_name_in_disguise_is_not_ours(attack: Attack, name: str) -> None:
    seen: list[int] = []

    def note(response: Response) -> None:
        seen.append(response.status)

    attack.page.on("response", note)
    with contextlib.suppress(PlaywrightError):
        # An address that leads nowhere on this machine is refused by the kernel.
        await attack.page.goto(attack.room.url.replace("127.0.0.1", name))
    attack.page.remove_listener("response", note)

    assert set(seen) <= {403}
    assert SECRET not in await attack.page.content()
    attack.check_untouched()


# --- what a browser keeps ------------------------------------------------------------------------


async def test_no_other_server_of_this_machine_is_sent_anything(
    attack: Attack, context: BrowserContext, site: ForeignSite
) -> None:
    await attack.page.goto(f"{site.url}/again")

    assert site.cookies == []
    assert await context.cookies() == []
