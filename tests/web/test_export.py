"""export.js: the whole history as a file."""

from typing import Final

from tests.web.modules import Parts

BEGIN: Final = """const { exportRoom } = await load("export"); const saved = []; const kept = [];
URL.createObjectURL = (blob) => { kept.push(blob); return "blob:x"; };
HTMLAnchorElement.prototype.click = function () { saved.push([this.download, this.getAttribute("href")]); };
answers["/health"] = { room: "den" };
const item = (seq, fields = {}) => ({ seq, ts: 86400 * 1.5 + seq, sender: "ada", target: "",
  id: `m${seq}`, text: "a\\n\\nb ", ...fields });
"""


async def test_a_history_as_markdown(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """answers["/history"] = { items: [item(1), item(2, { target: "bob", text: "x" }), item(90000,
          { text: "later" })] }; const done = await exportRoom("md");
        const lines = (await kept[0].text()).split("\\n");
        const clock = (seq) => new Date((86400 * 1.5 + seq) * 1000).toLocaleTimeString("sv-SE");
        return [done, saved, kept[0].type, lines.map((line) => line.replace(clock(1),
          "T1").replace(clock(2), "T2").replace(clock(90000), "T3"))]"""
    )

    assert got[:3] == [True, [["den.md", "blob:x"]], "text/markdown"]
    assert got[3][0] == "# Room den" and got[3][2].startswith("## 1970-01-0")
    assert got[3][3:] == [
        *["", "**ada** · T1 · m1", "", "> a", ">", "> b"],
        *["", "**ada** to bob · T2 · m2", "", "> x"],
        *["", got[3][14], "", "**ada** · T3 · m90000", "", "> later", ""],
    ]
    assert got[3][14].startswith("## 1970-01-0") and got[3][14] != got[3][2]


async def test_no_text_gets_out_of_its_quote(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """answers["/history"] = { items: [item(1, { text: "a\\r**bob** · now\\r\\nb" })] };
        await exportRoom("md");
        return (await kept[0].text()).split(/\\r\\n|\\r|\\n/)"""
    )

    assert got[-4:] == ["> a", "> **bob** · now", "> b", ""]


async def test_a_long_history_is_read_page_after_page(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """answers["/history"] = (path) =>
          ({ items: path.endsWith("after=0") ? Array.from({ length: 1000 }, (_,
          i) => item(i + 1)) : [item(1001)] });
        await exportRoom("json"); return [asked.map(([, path]) => path),
          JSON.parse(await kept[0].text()).length, saved[0][0], kept[0].type, texts(".toast p")]"""
    )

    assert got == [
        ["/health", "/history?limit=1000&after=0", "/history?limit=1000&after=1000"],
        1001,
        "den.json",
        "application/json",
        ["reading: 1000 messages so far"],
    ]


async def test_what_went_wrong_is_told(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """statuses["/history"] = 0;
        return [await exportRoom("md"), saved, texts(".toast p"), $(".toast").dataset.kind]"""
    )

    assert got == [False, [], ["the gateway does not answer (see: csp status)"], "error"]


async def test_the_memory_of_a_file_is_given_back_a_minute_later(parts: Parts) -> None:
    """Some browsers ask before they write, so the text must be there for a while."""
    got = await parts.run(
        BEGIN
        + """const { save } = await load("export"); const waits = []; const freed = [];
        window.setTimeout = (run, ms) => waits.push({ run, ms });
        URL.revokeObjectURL = (url) => freed.push(url);
        save("a.txt", "a", "text/plain"); const early = [...freed]; waits[0].run();
        return [early, waits.map(({ ms }) => ms), freed, saved]"""
    )

    assert got == [[], [60_000], ["blob:x"], [["a.txt", "blob:x"]]]
