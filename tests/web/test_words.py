"""words.js: the words for states, numbers, money."""

from tests.web.modules import Parts


async def test_every_state_of_an_agent_has_its_word(parts: Parts) -> None:
    assert await parts.run("return (await load('words')).AGENT_WORDS") == {
        "starting": "starting",
        "idle": "idle",
        "busy": "working",
        "needs_approval": "needs approval",
        "needs_human": "needs you",
        "limited": "at its limit",
        "paused": "paused",
        "benched": "benched",
        "offline": "offline",
    }


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
        "it is offline and gets it when it is back",
        "it is still starting",
        "it is at work and gets it after this turn",
        "a dialog is open in its pane",
        "somebody is typing in its pane",
        "there is a draft in its composer",
        "it is paused",
        "it comes with its next turn",
        "agents have talked among themselves for long",
        "a text is stuck in its composer",
        "no such reason",
        "",
    ]


async def test_every_step_of_a_delivery_has_its_sign(parts: Parts) -> None:
    steps = await parts.run(
        "const { STEPS } = await load('words');"
        "return Object.entries(STEPS).map(([id, { sign, word, kind }]) => [id, sign, word, kind].join(' '))"
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


async def test_a_time_of_day_has_hours_and_minutes_a_moment_has_its_day_too(parts: Parts) -> None:
    said = await parts.run(
        """const { clock, moment } = await load("words"); const ts = new Date(2031, 4, 6, 9, 5, 7) / 1000;
        return [clock(ts), moment(ts)]"""
    )

    assert said[0].startswith("09:05") and "2031" in said[1] and "05:07" in said[1]
