"""pace.js: a piece of work per frame, and a rest after a full one."""

from typing import Final

from tests.web.modules import Parts

#: Frames and waits come when the test says so.
BEGIN: Final = """const frames = []; window.requestAnimationFrame = (run) => frames.push(run);
const waits = []; window.setTimeout = (run, ms = 0) => waits.push({ run, ms });
const { Pacer } = await load("pace"); let done = 0; let isMuch = false;
const pacer = new Pacer(() => { done += 1; return isMuch; });
"""


async def test_any_number_of_wishes_is_one_piece_of_work_in_the_next_frame(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """pacer.wake(); pacer.wake(); const asked = [frames.length, done]; frames.shift()();
        const first = [done, frames.length, waits.length]; pacer.wake();
        return [asked, first, frames.length]"""
    )

    assert got == [[1, 0], [1, 0, 0], 1]


async def test_after_a_full_piece_the_browser_rests(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """isMuch = true; pacer.wake(); frames.shift()(); pacer.wake();
        const drawing = [frames.length, waits.map(({ ms }) => ms)]; waits.shift().run();
        const resting = [frames.length, waits[0].ms >= 150]; waits.shift().run();
        return [drawing, resting, frames.length, done]"""
    )

    assert got == [[0, [0]], [0, True], 1, 1]


async def test_a_rest_that_nobody_needs_ends_in_nothing(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """isMuch = true; pacer.wake(); frames.shift()(); waits.shift().run(); waits.shift().run();
        return [frames.length, waits.length, done]"""
    )

    assert got == [0, 0, 1]


async def test_a_hidden_page_works_without_frames(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """Object.defineProperty(document, "hidden", { value: true, configurable: true }); pacer.wake();
        delete document.hidden; const [{ ms, run }] = waits; run(); return [frames.length, ms, done]"""
    )

    assert got == [0, 100, 1]
