"""words.js: the words for states, numbers, money."""

from csp.protocol.enums import DeliveryState
from tests.web.modules import Parts


async def test_every_state_of_an_agent_has_its_word(parts: Parts) -> None:
    got = await parts.run(
        "const { agentWord } = await load('words'); return given.map((state) => agentWord(state))",
        ["busy", "needs_human", "new_one"],
    )

    assert got == ["working", "needs you", "new_one"]


async def test_why_a_message_waits_is_said_in_words(parts: Parts) -> None:
    said = await parts.run(
        "const { whyHeld } = await load('words'); return given.map((reason) => whyHeld(reason))",
        [
            "offline",
            "starting",
            "busy",
            "dialog",
            "typing",
            "draft",
            "paused",
            "turn",
            "loop",
            "stuck",
            "no such reason",
            None,
        ],
    )

    assert said == [
        "offline; queued until it returns",
        "still starting",
        "busy; queued until this turn ends",
        "a dialog is open",
        "somebody is typing in its pane",
        "draft (you have text in its input box)",
        "paused",
        "will be delivered with its next turn",
        "8 agent-to-agent messages in a row",
        "leftover text in its input box",
        "no such reason",
        "",
    ]


async def test_every_step_of_a_delivery_has_its_sign(parts: Parts) -> None:
    steps = await parts.run(
        """const { stepOf } = await load("words");
        return given.map((id) => { const { sign, text, kind } = stepOf(id);
          return [id, sign, text, kind].join(" "); })""",
        [*DeliveryState, "new_one"],
    )

    assert steps == [
        "queued ○ queued waits",
        "held ◔ waits waits",
        "typed ✓ typed moves",
        "submitted ✓ submitted done",
        "confirmed ✓✓ confirmed done",
        "failed ✗ failed failed",
        "withdrawn – withdrawn ended",
        "expired – expired ended",
        "new_one ? new_one waits",
    ]


async def test_numbers_money_and_plurals(parts: Parts) -> None:
    said = await parts.run(
        """const { count, money, several, hueOf } = await load("words");
        return [count(1234567), money(0.0123), money(0.99), money(1), money(12.5), several(1, "token"),
          several(0, "token"), several(1200, "reply", "replies"),
          ["ada", "bob", "claude", "codex", "gemini", "日本"].map(hueOf)]"""
    )

    assert said[:5] == ["1,234,567", "$0.0123", "$0.9900", "$1.00", "$12.50"]
    assert said[5:8] == ["1 token", "0 tokens", "1,200 replies"]
    assert said[8] == [337, 236, 357, 204, 162, 44]


async def test_names_that_begin_alike_have_avatars_of_their_own(parts: Parts) -> None:
    said = await parts.run(
        """const { initials } = await load("words");
        return ["claude", "codex", "x", "", "日本"].map(initials)"""
    )

    assert said == ["Cl", "Co", "X", "?", "日本"]


async def test_a_time_of_day_has_hours_and_minutes_a_moment_has_its_day_too(parts: Parts) -> None:
    said = await parts.run(
        """const { clock, moment } = await load("words"); const ts = new Date(2031, 4, 6, 9, 5, 7) / 1000;
        return [clock(ts), moment(ts)]"""
    )

    assert said[0].startswith("09:05") and "2031" in said[1] and "05:07" in said[1]
