"""stream.js: every event once, in order, whatever happens to the connection."""

from typing import Final

from tests.web.modules import Parts

#: Time stands still: what the stream waits for is done when the test says so.
BEGIN: Final = """sessionStorage.setItem("csp-token", "secret");
const waits = []; let pinging = null; const real = window.setTimeout;
window.setTimeout = (run, ms) => { waits.push({ run, ms }); return waits.length; };
window.setInterval = (run, ms) => { pinging = { run, ms }; };
const settle = () => new Promise((done) => real(done));
const wake = async () => { waits.pop().run(); await settle(); };
Math.random = () => 0.5;
let moment = 0;
performance.now = () => (moment += 1);
const { Stream } = await load("stream");
const heard = [];
const stream = new Stream({
  event: (event) => heard.push(event.seq), live: (live) => heard.push(live), gap: () => heard.push("gap"),
  status: (status) => heard.push(status),
});
"""


async def test_a_connection_goes_on_where_the_last_one_ended(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """stream.run(7); sockets[0].open(); sockets[0].hear({ seq: 8 }); sockets[0].hear({ seq: 8 });
        sockets[0].hear({ live: "x" }); sockets[0].close(); await settle(); const ms = waits.at(-1).ms;
        await wake();
        return [heard, sockets.map((socket) => new URL(socket.url).search), new URL(sockets[0].url).protocol,
          sockets[0].offer, ms, stream.seq]"""
    )

    assert got == [
        ["live", 8, "x", "lost"],
        ["?after=7", "?after=8"],
        "ws:",
        ["csp", "csp-token.secret"],
        300,
        8,
    ]


async def test_a_gap_in_the_numbers_is_told(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """stream.run(7); sockets[0].open();
        for (const seq of [8, 9, 12, 13]) sockets[0].hear({ seq }); return heard"""
    )

    assert got == ["live", 8, 9, "gap", 12, 13]


async def test_the_waits_grow_up_to_ten_seconds_and_begin_again_after_a_success(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """stream.run(0); const all = [];
        for (let round = 0; round < 8; round += 1) {
          sockets.at(-1).close(); await settle(); all.push(waits.at(-1).ms); await wake();
        }
        sockets.at(-1).open(); sockets.at(-1).close(); await settle();
        return [all, waits.at(-1).ms]"""
    )

    assert got == [[300, 600, 1200, 2400, 4800, 9600, 10000, 10000], 300]


async def test_who_is_not_let_in_does_not_try_again(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """stream.run(0); sockets[0].close(4001); await settle();
        return [heard, sockets.length, waits.length]"""
    )

    assert got == [["refused"], 1, 0]


async def test_a_stream_that_was_closed_does_not_come_back(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """stream.run(0); sockets[0].open(); stream.close(); await settle();
        return [heard, sockets.length, sockets[0].readyState]"""
    )

    assert got == [["live"], 1, 3]


async def test_a_network_that_is_back_is_used_at_once(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """stream.run(0); sockets[0].close(); await settle();
        window.dispatchEvent(new Event("online")); await settle();
        sockets[1].close(); await settle(); document.dispatchEvent(new Event("visibilitychange"));
        await settle();
        return sockets.length"""
    )

    assert got == 3


async def test_a_page_that_is_hidden_does_not_hurry(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """stream.run(0); sockets[0].close(); await settle();
        Object.defineProperty(document, "hidden", { value: true, configurable: true });
        document.dispatchEvent(new Event("visibilitychange")); await settle(); delete document.hidden;
        return sockets.length"""
    )

    assert got == 1


async def test_a_page_over_tls_has_a_socket_over_tls(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """sessionStorage.clear();
        window.URL = class extends URL { constructor(path) { super(path, "https://room.example/"); } };
        stream.run(3); return [sockets[0].url, sockets[0].offer]"""
    )

    assert got == ["wss://room.example/ws?after=3", ["csp", "csp-token."]]


async def test_only_an_open_connection_is_asked_and_only_that_one_is_given_up(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """pinging.run(); stream.run(0); pinging.run(); const none = waits.length;
        sockets[0].open(); await settle(); pinging.run(); const [{ run }] = waits.splice(0);
        sockets[0].close(); await settle(); await wake(); run();
        return [none, sockets.length, sockets[1].readyState]"""
    )

    assert got == [0, 2, 0]


async def test_silence_after_a_question_ends_a_connection(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """stream.run(0); sockets[0].open(); const every = pinging.ms;
        await settle(); pinging.run(); const [{ ms, run }] = waits.splice(0); const sent = sockets[0].sent;
        await settle(); sockets[0].hear({ live: "alive" }); run(); const answered = sockets[0].readyState;
        await settle(); pinging.run(); await settle(); waits.splice(0)[0].run();
        return [every, ms, sent, answered, sockets[0].readyState]"""
    )

    assert got == [15000, 10000, [{"op": "unwatch", "screen": "none"}] * 2, 1, 3]


async def test_a_screen_is_watched_as_long_as_anybody_looks(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """stream.run(0); stream.watch("ada"); stream.watch("bob"); stream.unwatch("bob");
        sockets[0].open(); const first = sockets[0].sent.splice(0);
        stream.watch("ada"); const again = sockets[0].sent.splice(0);
        stream.unwatch("ada"); stream.unwatch("cy"); const none = sockets[0].sent.splice(0);
        stream.unwatch("ada"); const last = sockets[0].sent.splice(0);
        const words = (frames) => frames.map(({ op, screen }) => `${op} ${screen}`);
        return [words(first), words(again), words(none), words(last)]"""
    )

    assert got == [["watch ada"], ["unwatch ada", "watch ada"], [], ["unwatch ada"]]
