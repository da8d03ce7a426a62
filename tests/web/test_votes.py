"""votes.js: the ballot of a session."""

from typing import Final

from tests.web.modules import Parts

DRAW: Final = """const { startVotes } = await load("votes");
const room = await makeRoom(); startVotes(room);
const show = (orchestration) => { room.shown = { session: {}, orchestration }; room.sessionsChanged.tell(); };
const proposals = { B: { agent: "bob", text: "**spaces**, 2 ** 3" },
  A: { agent: "ada", text: "t".repeat(300) } };
"""


async def test_votes_are_counted_as_the_room_counts_them(parts: Parts) -> None:
    got = await parts.run(
        DRAW
        + """show({ proposals, votes: { ada: { label: "A", reason: "mine" }, bob: { label: "A",
          reason: "" }, cy: { label: "B", reason: "<i>" } } });
        const share = (label) => $(`[data-label=${label}]`).style.getPropertyValue("--share");
        return [texts(".candidate-head b"), texts(".tally"), texts(".candidate .name"),
          texts(".reasons li"), share("A"), share("B"),
          $("#votes-part").hidden, $(".proposal").textContent.length, texts(".proposal")[1]]"""
    )

    assert got == [
        ["A", "B"],
        ["1 vote", "1 vote"],
        ["ada", "ada", "bob", "bob", "cy"],
        ["ada mine (for its own, so it does not count)", "bob gave no reason", "cy <i>"],
        "1",
        "1",
        False,
        281,
        "spaces, 2 ** 3",
    ]


async def test_own_votes_count_where_there_are_no_others(parts: Parts) -> None:
    got = await parts.run(
        DRAW
        + """show({ proposals, votes: { ada: { label: "A", reason: "x" } } });
        const own = [texts(".tally"), texts(".reasons li")];
        show({ proposals, votes: { ada: { label: "A", reason: "x" }, cy: { label: "B", reason: "y" },
          dee: { label: "B", reason: "z" } } });
        const share = $("[data-label=A]").style.getPropertyValue("--share");
        const others = texts(".tally"); show({}); return [own, others, share, $("#votes-part").hidden,
          texts(".candidate")]"""
    )

    assert got == [[["1 vote", "0 votes"], ["ada x"]], ["0 votes", "2 votes"], "0", True, []]
