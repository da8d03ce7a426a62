"""The page's own modules, called one by one: what they ask of a gateway is answered by the test."""

from typing import Any, Final

import msgspec
from playwright.async_api import Page

from csp.room.sessions.modes import build_catalogue

#: Notes every call to the gateway in `asked`, but the ids that the page gives to what is done in `ids`;
#: `answers` has what is answered by path, else nothing.
_WORLD: Final = """() => {
  window.asked = [];
  window.ids = [];
  window.answers = {};
  window.statuses = {};
  window.fetch = async (path, { method = "GET", body, headers } = {}) => {
    const [place] = path.split("?");
    const { id, ...said } = body === undefined ? {} : JSON.parse(body);
    if (id) window.ids.push(id);
    window.asked.push([method, path, body === undefined ? null : said]);
    window.headers = headers;
    if (window.statuses[place] === 0) throw new TypeError("no network");
    const answer = window.answers[place];
    const given = typeof answer === "function" ? await answer(path) : (answer ?? {});
    const status = window.statuses[place] ?? 200;
    const date = new Date(Date.now() + (window.skewMs ?? 0)).toUTCString();
    // Without a real response there is nothing to wait for: turn() is enough for all that follows from it.
    return { status, ok: status < 400, headers: new Headers({ Date: date }),
      text: async () => JSON.stringify(given), json: async () => structuredClone(given) };
  };
  window.sockets = [];
  window.WebSocket = class extends EventTarget {
    static OPEN = 1;
    readyState = 0;
    sent = [];
    constructor(url, offer) {
      super();
      Object.assign(this, { url: String(url), offer });
      window.sockets.push(this);
    }
    send(data) { this.sent.push(JSON.parse(data)); }
    open() { this.readyState = 1; this.dispatchEvent(new Event("open")); }
    hear(frame) { this.dispatchEvent(new MessageEvent("message", { data: JSON.stringify(frame) })); }
    close(code = 1006) {
      if (this.readyState === 3) return;
      this.readyState = 3;
      this.dispatchEvent(Object.assign(new Event("close"), { code }));
    }
  };
  window.load = async (name) => {
    const { catalogue } = await import("/page/catalogue.js");
    Object.assign(catalogue, window.catalogue);
    return import(`/page/${name}.js`);
  };
  window.$ = (selector) => document.querySelector(selector);
  window.texts = (selector) => [...document.querySelectorAll(selector)].map((one) => one.textContent);
  window.turn = () => new Promise((done) => setTimeout(done));
  window.frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  window.until = async (condition) => {
    for (const began = performance.now(); ; ) {
      const found = await condition();
      if (found) return found;
      if (performance.now() - began > 30_000) throw new Error(`did not come true: ${condition}`);
      await new Promise((done) => setTimeout(done, 5));
    }
  };
  window.makeRoom = async (fields = {}) => {
    const { Room } = await load("room");
    const room = Object.assign(new Room(), fields);
    room.refreshed = 0;
    room.refresh = () => { room.refreshed += 1; };
    return room;
  };
}"""


class Parts:
    """A document with the page's elements, in which nothing runs until a test begins it."""

    def __init__(self, page: Page) -> None:
        self.page = page

    async def open(self, origin: str) -> None:
        """Load the elements anew; what an earlier test began is gone."""
        await self.page.goto(f"{origin}/parts")
        await self.page.evaluate("() => { localStorage.clear(); sessionStorage.clear() }")
        await self.page.evaluate(_WORLD)
        served = msgspec.to_builtins(build_catalogue())
        await self.page.evaluate("(given) => { window.catalogue = given }", served)

    async def run(self, script: str, given: object = None) -> Any:
        """Run the body of an async function of `given`; return what it returns.

        At hand are load(name) for a module of the page, makeRoom(fields) for a room, `asked`, `ids`,
        `answers`, `statuses` and `sockets` for what is said to the gateway, $ and texts(selector) for what is
        shown.
        """
        return await self.page.evaluate(f"async (given) => {{ {script} }}", given)
