"""typed.js: what a person typed, taken apart as the human pane does it."""

from typing import Any

from tests.web.modules import Parts

READ = "const { readTyped } = await load('typed'); return given.map((text) => readTyped(text, 'ada'))"


def _say(to: str, text: str, *, urgent: bool = False) -> dict[str, Any]:
    return {"kind": "say", "to": to, "text": text, "urgent": urgent}


def _mode(**body: Any) -> dict[str, Any]:
    return {"kind": "mode", "body": body}


STOP = {"kind": "stop"}
ADDRESSED = {
    "  hello  ": _say("ada", "hello"),
    "   ": {"kind": "nothing"},
    "@bob: hi": _say("bob", "hi"),
    "@BOB, hi": _say("bob", "hi"),
    "!bob now": _say("bob", "now", urgent=True),
    "@bob": {"kind": "aim", "to": "bob"},
    "@@bob": _say("ada", "@bob"),
    "!!bob": _say("ada", "!bob"),
    "//x": _say("ada", "/x"),
    "@-x y": _say("ada", "@-x y"),
    "@" + "a" * 33 + " x": _say("ada", "@" + "a" * 33 + " x"),
    "!bob": {"kind": "wrong", "problem": "expected a text behind it", "hint": "!bob text"},
}
STOPS = [
    "allstop",
    "ALL-STOP!",
    "all stop",
    "@all allstop",
    "@ada: Allstop",
    "/allstop",
    "@allstop",
    "All Stop.",
]
NO_STOPS = ["allstop now", "asphalt", "please allstop", "allstop" + " " * 3 + "x", "stop"]


async def test_to_whom_a_text_goes(parts: Parts) -> None:
    assert await parts.run(READ, list(ADDRESSED)) == list(ADDRESSED.values())


async def test_allstop_in_every_spelling_and_nothing_else(parts: Parts) -> None:
    assert await parts.run(READ, STOPS) == [STOP] * len(STOPS)
    assert [typed["kind"] for typed in await parts.run(READ, NO_STOPS)] == ["say"] * len(NO_STOPS)
    assert await parts.run(READ, ["a-l-l-s-t-o-p" + "-" * 87, "a-l-l-s-t-o-p" + "-" * 88]) == [
        STOP,
        _say("ada", "a-l-l-s-t-o-p" + "-" * 88),
    ]


async def test_commands(parts: Parts) -> None:
    typed = await parts.run(READ, ["/Help", "/skip  bob ", "/mode", "/1 x"])

    assert typed == [
        {"kind": "command", "name": "help", "rest": ""},
        {"kind": "command", "name": "skip", "rest": "bob"},
        {"kind": "command", "name": "mode", "rest": ""},
        {"kind": "wrong", "problem": "this is not a command", "hint": "to send it as a text, type //1"},
    ]


async def test_a_mode_with_its_options(parts: Parts) -> None:
    typed = await parts.run(
        READ,
        [
            '/mode Debate "tabs or spaces" --rounds 2 --agents @Ada,bob --first @Bob --synth ada --ballot',
            "/mode autopilot go on --turns 5 --tokens 1000 --minutes 2.5 --cost 0.25 --respect-final",
            "/mode round_robin a topic --steps=4",
            "@router collaborate claude codex: the goal",
            "@router debate: whom",
        ],
    )

    assert typed == [
        _mode(
            mode="debate",
            limits={},
            rounds=2,
            agents=["ada", "bob"],
            first="bob",
            synth="ada",
            ballot=True,
            topic="tabs or spaces",
        ),
        _mode(
            mode="autopilot",
            limits={"turns": 5, "tokens": 1000, "minutes": 2.5, "cost": 0.25},
            respect_final=True,
            topic="go on",
        ),
        _mode(mode="round_robin", limits={}, steps=4, topic="a topic"),
        _mode(mode="collaborate", topic="the goal", agents=["claude", "codex"]),
        _mode(mode="debate", topic="whom"),
    ]


async def test_a_wrong_option_is_named(parts: Parts) -> None:
    typed = await parts.run(
        READ,
        [
            "/mode debate x --rounds many",
            "/mode debate x --turns 1.1234567",
            "/mode debate x --dance 1",
            "@router x",
        ],
    )

    assert [(one["kind"], one["problem"]) for one in typed] == [
        ("wrong", "--rounds: expected a number"),
        ("wrong", "--turns: expected a number"),
        ("wrong", "--dance: there is no such option"),
        ("wrong", "expected a mode, agents, a colon, a goal"),
    ]
