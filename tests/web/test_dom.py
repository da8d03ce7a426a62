"""dom.js: elements are built, none of them from a string of markup."""

from tests.web.modules import Parts


async def test_elements_with_their_attributes(parts: Parts) -> None:
    got = await parts.run(
        """const { h, svg, button } = await load("dom"); let clicks = 0;
        const made = h("p", { class: "a", hidden: true, title: null, lang: false, id: undefined,
          tabindex: 0, data: { x: 1 }, vars: { hue: 7 }, on: { click: () => (clicks += 1) } }, "<b>",
          null, false, undefined, ["x", h("i")], 0);
        made.click(); const press = button("go", () => (clicks += 10), { class: "small",
          on: { focus: () => (clicks += 100) } }); press.click(); press.dispatchEvent(new Event("focus"));
        return [made.outerHTML, clicks, press.type, press.className, svg("rect", { x: 1 }).namespaceURI]"""
    )

    assert got == [
        '<p class="a" hidden="" tabindex="0" data-x="1" style="--hue: 7;">&lt;b&gt;x<i></i>0</p>',
        111,
        "button",
        "small",
        "http://www.w3.org/2000/svg",
    ]


async def test_nothing_is_touched_that_is_as_it_should_be(parts: Parts) -> None:
    got = await parts.run(
        """const { h, set, setText, swap, byId } = await load("dom");
        const place = document.body.appendChild(h("p", { id: "here", title: "t", hidden: true }, "text"));
        const seen = []; const observer = new MutationObserver((all) => seen.push(...all.map((one) =>
          one.attributeName ?? "text"))); observer.observe(place, { attributes: true, childList: true });
        set(place, { title: "t", hidden: true, lang: null }); setText(place, "text"); await turn();
        const quiet = seen.length;
        set(place, { title: 5, hidden: false }); setText(place, "new"); await turn();
        const touched = [...seen]; const html = place.outerHTML; swap(place, h("b"), null, ["x", false]);
        let missing = ""; try { byId("nowhere"); } catch (error) { missing = error.message; }
        return [quiet, touched, html, place.innerHTML, byId("here") === place, missing]"""
    )

    assert got == [
        0,
        ["title", "hidden", "text"],
        '<p id="here" title="5">new</p>',
        "<b></b>x",
        True,
        "the page has no #nowhere",
    ]
