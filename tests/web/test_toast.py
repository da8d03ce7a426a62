"""toast.js: short words to the person."""

from tests.web.modules import Parts


async def test_a_word_goes_by_itself_an_error_stays(parts: Parts) -> None:
    got = await parts.run(
        """const waits = []; window.setTimeout = (run, ms) => waits.push({ run, ms });
        const { tell } = await load("toast");
        tell("hello <b>"); tell("wrong", { isError: true, hint: "do better" });
        const shown = [...document.querySelectorAll(".toast")].map((toast) =>
          [toast.getAttribute("role"), toast.dataset.kind]);
        const said = texts(".toast p"); const times = waits.map(({ ms }) => ms); waits[0].run();
        const left = texts(".toast p"); const label = $(".toast button").getAttribute("aria-label");
        $(".toast button").click();
        return [shown, said, times, left, texts(".toast"), label]"""
    )

    assert got == [
        [["status", "note"], ["alert", "error"]],
        ["hello <b>", "wrong (do better)"],
        [8000],
        ["wrong (do better)"],
        [],
        "Close",
    ]


async def test_three_are_shown_at_most(parts: Parts) -> None:
    assert await parts.run(
        """const { tell } = await load("toast"); for (const text of "abcde") tell(text, { isError: true });
        return texts(".toast p")"""
    ) == ["c", "d", "e"]


async def test_an_attempt_tells_what_went_wrong(parts: Parts) -> None:
    got = await parts.run(
        """const { attempt } = await load("toast"); const { get } = await load("api");
        answers["/a"] = { fine: true }; answers["/b"] = { error: "no", hint: "try" }; statuses["/b"] = 400;
        return [await attempt(get("/a")), await attempt(get("/b")), texts(".toast p"),
          $(".toast").dataset.kind]"""
    )

    assert got == [{"fine": True}, None, ["no (try)"], "error"]


async def test_what_is_told_of_a_line_goes_with_the_next_one(parts: Parts) -> None:
    got = await parts.run(
        """const { clearLine, tell } = await load("toast");
        tell("no such command", { isError: true, isOfLine: true }); tell("b", { isError: true });
        const before = texts(".toast p"); clearLine(); return [before, texts(".toast p")]"""
    )

    assert got == [["no such command", "b"], ["b"]]


async def test_what_is_told_of_a_lost_gateway_goes_when_it_is_back(parts: Parts) -> None:
    got = await parts.run(
        """const { attempt, clearLost, tell } = await load("toast"); const { get } = await load("api");
        statuses["/x"] = 0; await attempt(get("/x")); await attempt(get("/x")); tell("b", { isError: true });
        const lost = texts(".toast p"); clearLost(); return [lost, texts(".toast p")]"""
    )

    assert got == [["the gateway does not answer (see: csp status)", "b"], ["b"]]
