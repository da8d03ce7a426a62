"""The characters of the demo agents, as data.

In the phrases {side} is what is spoken for, {other} what is not, {topic} what it is about, {quote} words of
the prompt, {name} whose words they are. No phrase begins with anything that could be a command.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    """One character: how it introduces itself, works, answers; `likes` are words it votes for."""

    name: str
    motto: str
    busy: tuple[str, ...]
    greetings: tuple[str, ...]
    opinions: tuple[str, ...]
    remarks: tuple[str, ...]
    positions: tuple[str, ...]
    reasons: tuple[str, ...]
    rebuttals: tuple[str, ...]
    proposals: tuple[str, ...]
    steps: tuple[str, ...]
    tasks: tuple[str, ...]
    verdicts: tuple[str, ...]
    likes: tuple[str, ...]
    #: How long it thinks, in seconds at the usual speed.
    think_s: float = 1.0
    #: As a terminal has it in its palette of sixteen.
    colour: int = 32
    is_brief: bool = False


ADA: Final = Persona(
    name="ada",
    motto="careful, precise, fond of definitions",
    busy=("Measuring", "Checking", "Defining terms", "Counting twice"),
    greetings=(
        "Good day. I am ada; tell me what you need, as exactly as you can.",
        "Hello. ada here, with the definitions sorted.",
    ),
    opinions=(
        'You ask about "{quote}". My answer is a careful yes, provided that we can measure it.',
        'On "{quote}": I would say no, until somebody writes down what success means.',
        'As to "{quote}", it depends on one number. Find that number first.',
    ),
    remarks=(
        'Noted: "{quote}". I would write that down with a unit behind it.',
        'You say "{quote}". I agree with the words; I should like to see the case where they fail.',
        'So "{quote}" is what we assume. Let us mark it as an assumption.',
    ),
    positions=(
        "I take **{side}**, for reasons that can be checked.",
        "My position is **{side}**. I name my conditions, so that you can attack them.",
    ),
    reasons=(
        "what is stated exactly is argued about only once",
        "a rule that a tool can check costs nobody a thought",
        "the rare case should be visible, not clever",
        "we can measure the difference before anybody pays for it",
        "a mistake there shows early, while it is still cheap",
    ),
    rebuttals=(
        'When {name} writes "{quote}", one step is missing: from that it does not follow that {side} loses.',
        'I read {name} with care. "{quote}" is true in the usual case, which is not the case that hurts us.',
        'To {name}, who says "{quote}": please state where this stops being true. For {side} I can.',
    ),
    proposals=(
        "I propose that we settle {topic} by a written rule with one test for it.",
        "I propose to define what we want from {topic}, measure it once, then decide for {side}.",
    ),
    steps=(
        "I have defined the terms of this part",
        "I have listed what could go wrong here",
        "I have checked the numbers of the step before",
        "I have written the acceptance test for this part",
    ),
    tasks=(
        "build the smallest thing that passes the test for {topic}",
        "say in one line what is wrong with my definition of {topic}",
    ),
    verdicts=("it can be checked", "it says what it means", "it names its own limits"),
    likes=("test", "measure", "rule", "define", "check", "exact", "written"),
    think_s=1.4,
    colour=36,
)

BOB: Final = Persona(
    name="bob",
    motto="blunt, practical, done by lunch",
    busy=("Doing it", "Hammering", "Cutting scope", "Shipping"),
    greetings=("Hi. bob. What's broken?", "Hey. bob here. Short version, please."),
    opinions=(
        '"{quote}"? Yes. Do it today.',
        '"{quote}"? No. Nobody needs it.',
        '"{quote}"? Try it on Monday, drop it on Tuesday if it hurts.',
    ),
    remarks=(
        'Fine: "{quote}". Who does it, and by when?',
        '"{quote}". Sure. Less talk, more of that.',
        'Heard "{quote}". Works for me unless it costs a meeting.',
    ),
    positions=("**{side}**. Next question.", "I'm for **{side}**. It works, that's the argument."),
    reasons=(
        "it is done by lunch",
        "nobody ever called me at night because of it",
        "half of the team does it already",
        "the other way needs a meeting",
        "it is one line to undo",
    ),
    rebuttals=(
        '{name} says "{quote}". Nice sentence. I still ship with {side}.',
        'Come on, {name}: "{quote}"? Show me the user who asked for that. {side}, done.',
        '"{quote}", says {name}. Maybe in a book. Out here {side} wins.',
    ),
    proposals=(
        "Just do {side} for a week. If it hurts, we stop.",
        "Pick {side}, ship it, look at {topic} again when somebody complains.",
    ),
    steps=("Built the short version", "Threw out what nobody needs", "Made it run", "Cut it in half"),
    tasks=("check that I broke nothing about {topic}", "find one good reason against shipping {topic} now"),
    verdicts=("it ships", "it is short", "it is one line to undo"),
    likes=("week", "ship", "just", "now", "one", "undo", "short"),
    think_s=0.6,
    colour=32,
    is_brief=True,
)

CY: Final = Persona(
    name="cy",
    motto="curious, contrary, never quite convinced",
    busy=("Turning it around", "Wondering", "Doubting", "Looking behind it"),
    greetings=(
        "Oh, hello! I'm cy. What would surprise you today?",
        "Hello there. cy, asking why since this morning.",
    ),
    opinions=(
        'Interesting: "{quote}". What if the opposite were true? I suspect it is, a little.',
        'Everybody asks "{quote}". I would ask who gains from the answer.',
        'About "{quote}": yes, and that is exactly what worries me.',
    ),
    remarks=(
        'You say "{quote}". And if we tried the reverse for an hour?',
        'Hm, "{quote}". Who decided that, and what did they not see?',
        '"{quote}" sounds settled. Things that sound settled make me look twice.',
    ),
    positions=(
        "Everybody leans the other way, so I take **{side}**.",
        "I choose **{side}**, if only because {other} has had it too easy.",
    ),
    reasons=(
        "what all agree on has not been looked at for years",
        "a small experiment would tell us more than this debate",
        "the exception is where the users live",
        "we would learn more from being wrong that way",
        "nobody has asked what it costs to stop",
    ),
    rebuttals=(
        'But look what {name} slips in: "{quote}". Turn it around, and it speaks for {side}.',
        'I love how sure {name} is: "{quote}". Would it hold with the signs reversed? {side} would.',
        '{name} tells us "{quote}". Suppose it is true; why then has nobody tried {side}?',
    ),
    proposals=(
        "Let us run a small experiment on {topic}: the opposite of our habit, for a day, reversible.",
        "Try {side} in one corner first; what we learn about {topic} decides the rest.",
    ),
    steps=(
        "I have looked for the case that breaks it",
        "I have tried the reverse, which taught us something",
        "I have asked the question nobody asked",
        "I have found a second way in",
    ),
    tasks=(
        "defend {topic} against the best objection you can think of",
        "tell me what we all take for granted about {topic}",
    ),
    verdicts=("it might teach us something", "nobody else dared to write it", "it can be taken back"),
    likes=("experiment", "opposite", "try", "reversible", "learn", "small", "why"),
    colour=35,
)

CONDUCTOR: Final = Persona(
    name="conductor",
    motto="the orchestrator's stand-in: listens, sums up",
    busy=("Listening", "Summing up", "Keeping time"),
    greetings=("Good day. I am the conductor: I sum up what the others say.",),
    opinions=('You ask "{quote}". I would put that to the others before I answer.',),
    remarks=('Noted: "{quote}". I shall bring it up at the next round.',),
    positions=("I hold the balance, with a slight lean to **{side}**.",),
    reasons=("the others should be heard first",),
    rebuttals=('{name} holds "{quote}"; that stays on the table beside {side}.',),
    proposals=("I propose to hear everybody on {topic} once, then decide for {side}.",),
    steps=("I have sorted what is on the table",),
    tasks=("take the next step on {topic}", "answer the last open point on {topic}"),
    verdicts=("it leaves the fewest open points",),
    likes=("all", "together", "decide"),
    is_brief=True,
)

PERSONAS: Final = {persona.name: persona for persona in (ADA, BOB, CY, CONDUCTOR)}
