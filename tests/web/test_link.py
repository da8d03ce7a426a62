"""access.js: a one-time link is used up and taken out of the address bar."""

from tests.web.modules import Parts

CODE = "a" * 24


async def test_a_link_is_changed_for_a_token(parts: Parts) -> None:
    got = await parts.run(
        """const { enter, token, forget } = await load("access");
        answers["/page/enter"] = { token: "page-token" };
        history.replaceState(null, "", `#link=${given}`); const why = await enter();
        const had = [token(), location.hash]; forget();
        return [why, had, token(), asked]""",
        CODE,
    )

    assert got == ["", ["page-token", ""], None, [["POST", "/page/enter", {"code": CODE}]]]


async def test_what_is_no_link_is_not_used(parts: Parts) -> None:
    got = await parts.run(
        """const { enter, token } = await load("access"); const left = [];
        for (const hash of ["#link=short", "#link=" + "a".repeat(129), "#link=" + "a".repeat(20) + "/",
          "#composer-text"]) { history.replaceState(null, "", hash); await enter();
        left.push(location.hash); }
        return [left, asked, token()]"""
    )

    assert got == [["", "", "", "#composer-text"], [], None]


async def test_a_refused_link_says_why(parts: Parts) -> None:
    got = await parts.run(
        """const { enter, token } = await load("access"); statuses["/page/enter"] = 401; const why = [];
        for (const answer of [{ error: "used" }, {}, { "no JSON": () => 1 }]) {
        answers["/page/enter"] = answer; history.replaceState(null, "", `#link=${given}`);
        why.push(await enter()); }
        return [why, token(), location.hash]""",
        CODE,
    )

    assert got == [["used", "the gateway answered 401", "the gateway answered 401"], None, ""]
