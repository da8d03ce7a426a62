"""log.js: a window on the history, without a gap and never too large."""

from tests.web.modules import Parts

ITEMS = "const items = (from, to) => Array.from({ length: to - from }, (_, i) => ({ seq: from + i }));"
SEQS = "const seqs = (all) => all.map((item) => item.seq);"
BEGIN = f"const {{ Log }} = await load('log'); {ITEMS} {SEQS} const log = new Log();"


async def test_each_message_is_held_once(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """log.begin(items(10, 13), { isAtStart: false, isAtEnd: true });
        return [seqs(log.append(items(12, 15))), seqs(log.prepend(items(8, 11))), seqs(log.items),
          log.first, log.last]"""
    )

    assert got == [[13, 14], [8, 9], [8, 9, 10, 11, 12, 13, 14], 8, 14]


async def test_an_empty_window_takes_whatever_comes(parts: Parts) -> None:
    got = await parts.run(
        BEGIN + "return [log.first, log.last, seqs(log.prepend(items(5, 7))), log.isAtEnd, log.isAtStart]"
    )

    assert got == [0, 0, [5, 6], True, False]


async def test_what_is_too_much_is_let_go_at_the_other_end(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const { MAX_ITEMS } = await load("log");
        log.begin(items(1, 401), { isAtStart: true, isAtEnd: true });
        const none = [log.trimStart().length, log.isAtStart, log.trimEnd().length, log.isAtEnd];
        log.append(items(401, 403));
        const old = [seqs(log.trimStart()), log.isAtStart, log.items.length];
        log.prepend(items(0, 3));
        const fresh = [seqs(log.trimEnd()), log.isAtEnd, log.first, log.last];
        return [MAX_ITEMS, none, old, fresh]"""
    )

    assert got == [400, [0, True, 0, True], [[1, 2], False, 400], [[400, 401, 402], False, 0, 399]]
