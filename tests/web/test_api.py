"""api.js: calls to the gateway, and what its clock shows."""

from tests.web.modules import Parts


async def test_a_call_carries_the_token_and_its_body(parts: Parts) -> None:
    got = await parts.run(
        """sessionStorage.setItem("csp-token", "secret"); answers["/x"] = { a: 1 };
        const { call, get, post, part } = await load("api");
        return [await get("/x?y=1"), headers["X-Auth-Token"], await post("/z"), asked, part("a/b c")]"""
    )

    assert got == [
        {"a": 1}, "secret", {}, [["GET", "/x?y=1", None], ["POST", "/z", {}]], "a%2Fb%20c",
    ]  # fmt: skip


async def test_a_refusal_says_why_and_what_to_do(parts: Parts) -> None:
    got = await parts.run(
        """const { get } = await load("api");
        answers["/a"] = { error: "no", hint: "ask nicely" };
        Object.assign(statuses, { "/a": 409, "/b": 500, "/c": 0 });
        const why = [];
        for (const path of ["/a", "/b", "/c"]) {
          await get(path).catch((error) => why.push([error.status, error.message, error.hint]));
        }
        return why"""
    )

    assert got == [
        [409, "no", "ask nicely"],
        [500, "the gateway answered 500", ""],
        [0, "the gateway does not answer", "see: csp status"],
    ]


async def test_a_page_that_is_not_known_any_more_forgets_its_token(parts: Parts) -> None:
    got = await parts.run(
        """sessionStorage.setItem("csp-token", "secret"); statuses["/a"] = 401;
        answers["/a"] = { error: "left" };
        const { get, lockedOut } = await load("api"); const told = []; lockedOut.on((why) => told.push(why));
        statuses["/b"] = 403; await get("/b").catch(() => {});
        const kept = sessionStorage.getItem("csp-token");
        await get("/a").catch(() => {});
        return [kept, sessionStorage.getItem("csp-token"), told]"""
    )

    assert got == ["secret", None, ["left"]]


async def test_the_gateways_clock_counts(parts: Parts) -> None:
    """A difference of less than a second is none, for the header counts whole seconds."""
    offsets = await parts.run(
        """const { get, now } = await load("api"); const offsets = [];
        for (const skew of [0, 600_000, 600_000, -60_000]) {
          window.skewMs = skew; await get("/x"); offsets.push(now() - Date.now() / 1000);
        }
        return offsets"""
    )

    assert offsets[0] == 0
    assert abs(offsets[1] - 600) <= 1 and abs(offsets[2] - offsets[1]) < 1e-3 and abs(offsets[3] + 60) <= 1


async def test_a_difference_of_a_few_seconds_counts_and_no_answer_is_kept(parts: Parts) -> None:
    got = await parts.run(
        """const { get, now } = await load("api"); const kept = []; const answer = window.fetch;
        window.fetch = (path, options) => { kept.push(options.cache); return answer(path, options); };
        window.skewMs = 5000; await get("/x"); return [now() - Date.now() / 1000, kept]"""
    )

    assert abs(got[0] - 5) <= 1 and got[1] == ["no-store"]


async def test_an_act_keeps_its_id_until_it_is_answered(parts: Parts) -> None:
    """The repeats of the page have it, and so has the same act when the person tries again."""
    got = await parts.run(
        """const { act } = await load("api"); const used = () => [...new Set(ids.splice(0))];
        statuses["/x"] = 0; const failed = await act("/x", { a: 1 }).catch((error) => error.status);
        const tries = ids.length; const first = used(); statuses["/x"] = 200;
        await act("/x", { a: 2 }); const other = used();
        await act("/x", { a: 1 }); const again = used(); await act("/x", { a: 1 }); const later = used();
        return [failed, tries > 2, first.length, again[0] === first[0], other[0] === first[0],
          later[0] === first[0], asked.length === tries + 3]"""
    )

    assert got == [0, True, 1, True, False, False, True]


async def test_an_act_that_is_refused_is_not_repeated(parts: Parts) -> None:
    got = await parts.run(
        """const { act } = await load("api"); statuses["/x"] = 409;
        for (const n of [1, 2]) await act("/x").catch(() => {});
        return [asked.length, new Set(ids).size]"""
    )

    assert got == [2, 2]


async def test_an_answer_that_breaks_off_is_lost(parts: Parts) -> None:
    got = await parts.run(
        """const { act } = await load("api"); const answer = window.fetch; let lost = 0;
        window.fetch = async (...given) => ({ ...(await answer(...given)), text: async () => {
          if (lost++ === 0) throw new TypeError("broken off"); return '{"a": 1}'; } });
        return [await act("/x"), asked.length, new Set(ids).size]"""
    )

    assert got == [{"a": 1}, 2, 1]
