"""banner.js: an agent suggests to finish, while nothing but Allstop ends the session."""

from typing import Final

from tests.web.modules import Parts

BEGIN: Final = """const { startBanner } = await load("banner");
const room = await makeRoom({ sessions: [{ id: "s", mode: "autopilot", status: "running", thread: "t" },
  { id: "c", mode: "collaborate", status: "running" }] }); startBanner(room);
room.sessionsChanged.tell();
const say = (fields) => { room.said.tell({ type: "agent_response", final: true, sender: "ada",
  session_id: "s", ...fields }); return !$("#banner").hidden; };
"""


async def test_only_a_final_word_in_an_autopilot_shows_it(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """return [say({ final: false }), say({ late: true }), say({ type: "agent_call" }),
          say({ session_id: "c" }), say({ session_id: "none" }), say({}), texts("#banner p")]"""
    )

    said = ["ada suggests finishing. Press ALLSTOP to end, or let them continue."]
    assert got == [False, False, False, False, False, True, said]


async def test_it_goes_when_it_was_answered_or_the_session_ended(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const [, go] = (say({}), document.querySelectorAll("#banner button")); go.click();
        const forgotten = $("#banner").hidden;
        say({ sender: "bob" }); const again = texts("#banner p")[0].includes("bob");
        $("#banner button").click(); const stopped = asked.map(([, path, body]) => [path, body]);
        room.sessions[0].status = "ended"; room.sessionsChanged.tell();
        return [forgotten, again, stopped, $("#banner").hidden]"""
    )

    assert got == [True, True, [["/stop", {"all": True}]], True]


async def test_it_is_not_drawn_again_under_the_hand_of_a_person(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """say({}); const button = $("#banner button"); room.sessionsChanged.tell();
        return button.isConnected"""
    )

    assert got is True
