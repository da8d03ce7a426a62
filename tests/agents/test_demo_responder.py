"""What the demo agents say: it depends on the prompt, quotes it, commands nothing by accident."""

import re
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csp.agents.demo import demo_prompt
from csp.agents.demo.demo_prompt import DemoPrompt, Kind, Said
from csp.agents.demo.personas import CONDUCTOR, PERSONAS
from csp.agents.demo.responder import MAX_QUOTE, MAX_TOPIC, quote, reply
from csp.room.agent_text import Finish, HandOver, Noop, Vote, parse_commands

AGENTS = ["ada", "bob", "cy"]
ALL = [*AGENTS, "conductor"]
OPTIONS = ("keep the logs in one file", "run a small experiment first", "ship it now, undo it later")


def message(text: str, sender: str = "human", me: str = "ada") -> DemoPrompt:
    return demo_prompt.message(f"[from {sender} #418]\n{text}\n[end #418]", me)


def turn(kind: Kind, topic: str = "tabs or spaces", *said: str, me: str = "ada", **fields: Any) -> DemoPrompt:
    """Return a turn in which the words of others are given as `name: text`."""
    spoken = tuple(Said(name=name, text=text) for name, _, text in (one.partition(": ") for one in said))
    text = "\n\n".join([kind, topic, *said])
    return DemoPrompt(kind=kind, text=text, topic=topic, said=spoken, me=me, **fields)


def work(topic: str = "write a README", *said: str, me: str = "ada", **fields: Any) -> DemoPrompt:
    others = tuple(name for name in AGENTS if name != me)
    known = {"others": others, "round": 1, "last_round": 9, "can_hand_over": True, "can_finish": True}
    return turn(Kind.WORK, topic, *said, me=me, **(known | fields))


def ballot(options: dict[str, str]) -> DemoPrompt:
    return turn(Kind.VOTE, "which one", options=tuple(options.items()))


def voted(text: str) -> Vote:
    (vote,) = [command for command in parse_commands(text) if isinstance(command, Vote)]
    return vote


def quotes(text: str) -> list[str]:
    return re.findall(r'"([^"]+)"', text)


# --- messages ------------------------------------------------------------------------------------


@pytest.mark.parametrize("persona", ALL)
def test_a_greeting_is_greeted_by_name(persona: str) -> None:
    assert persona in reply(persona, message("hello"), 0)


@pytest.mark.parametrize("persona", ALL)
@pytest.mark.parametrize("text", ["Should we rewrite the parser in Rust?", "The tests are too slow for me."])
def test_an_answer_quotes_its_message(persona: str, text: str) -> None:
    found = quotes(reply(persona, message(text), 0))

    assert any(words in text and len(words.split()) >= 3 for words in found)


def test_each_agent_has_a_manner_of_its_own() -> None:
    said = {reply(persona, message("Should we rewrite the parser in Rust?"), 0) for persona in ALL}

    assert len(said) == len(ALL)


def test_an_answer_to_an_agent_names_it() -> None:
    assert reply("ada", message("The tests are too slow.", "bob"), 0).startswith("bob: ")


def test_thanks_are_welcome() -> None:
    assert 'I keep "thanks a lot for this" as' in reply("ada", message("thanks a lot for this"), 0)


def test_code_is_answered_with_code_in_a_fence() -> None:
    assert "\n```python\n" in reply("bob", message("Show me the code for that, please."), 0)


@pytest.mark.parametrize("text", ["write a function", "list the steps"])
def test_the_conductor_adds_nothing_to_its_words(text: str) -> None:
    answer = reply("conductor", message(text), 0)

    assert "```" not in answer and "My points" not in answer
    assert "\n" in reply("ada", message(text), 0)


def test_a_prompt_without_our_lines_is_answered_too() -> None:
    assert '"what is this for"' in reply("ada", demo_prompt.message("what is this for", "ada"), 0)


def test_what_the_room_itself_says_needs_no_answer() -> None:
    assert parse_commands(reply("conductor", message("[CSP: nothing new]", "system"), 0)) == (Noop(),)


def test_only_a_person_sets_the_mode_and_only_by_the_conductor() -> None:
    wish = 'start debate on "tabs" in 3 rounds'

    assert reply("conductor", message(wish), 0) == '@mode.set debate "tabs" --rounds 3'
    assert "@mode" not in reply("conductor", message(wish, "bob"), 0)
    assert "@mode" not in reply("ada", message(wish), 0)


# --- quotes --------------------------------------------------------------------------------------


@given(
    text=st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=300),
    persona=st.sampled_from(AGENTS),
)
def test_a_quote_stands_in_its_text(text: str, persona: str) -> None:
    found = quote(text, persona)

    assert found == "nothing at all" or found in text


@given(words=st.lists(st.from_regex(r"[a-z]{1,9}", fullmatch=True), min_size=3, max_size=40))
def test_a_quote_has_three_words_where_there_are_three(words: list[str]) -> None:
    assert len(quote(" ".join(words)).split()) >= 3


def test_a_quote_and_a_topic_are_short() -> None:
    long = " ".join(["wonderfully"] * 20)
    quoted = quote(long)
    position = reply("ada", turn(Kind.POSITION, f"{long} end"), 0)

    assert quoted == " ".join(["wonderfully"] * 6) and len(quoted) <= MAX_QUOTE
    assert quote("x" * 90 + " " + "y" * 90 + " " + "z" * 90 + " w").count(" ") == 2
    assert (MAX_QUOTE, MAX_TOPIC) == (80, 90)
    assert 'wonderfully …"' in position and long not in position


# --- debates -------------------------------------------------------------------------------------


@pytest.mark.parametrize("persona", AGENTS)
def test_a_position_takes_one_of_the_two_sides(persona: str) -> None:
    assert re.search(r"\*\*(tabs|spaces)\*\*", reply(persona, turn(Kind.POSITION), 0))


@pytest.mark.parametrize("persona", AGENTS)
def test_a_rebuttal_names_a_speaker_with_words_of_his(persona: str) -> None:
    texts = {
        "codex": "Tabs let every reader choose the width they like.",
        "gemini": "Spaces look the same in all editors of the world.",
    }
    spoken = [f"{name}: {text}" for name, text in texts.items()]
    said = reply(persona, turn(Kind.REBUTTAL, "tabs or spaces", *spoken), 1)
    named = [name for name in texts if name in said]

    assert named
    for name in named:
        assert any(words in texts[name] and len(words.split()) >= 3 for words in quotes(said))


def test_an_agent_does_not_argue_with_itself() -> None:
    spoken = ("bob-2: I am for tabs since ever.", "bob: I measure spaces twice a day.")
    said = reply("bob", turn(Kind.REBUTTAL, "tabs or spaces", *spoken, me="bob-2"), 1)

    assert "I measure spaces twice" in said
    assert "since ever" not in said


def test_the_conductor_names_every_speaker_with_a_phrase() -> None:
    spoken = ("ada: Measure it first of all.", "bob: Just ship the thing.")
    said = reply("conductor", turn(Kind.REBUTTAL, "tabs or spaces", *spoken, me="conductor"), 0)

    assert '- ada holds "Measure it first of all"' in said
    assert '- bob holds "Just ship the thing"' in said


# --- ballots -------------------------------------------------------------------------------------


@pytest.mark.parametrize("persona", ALL)
def test_a_vote_is_for_a_text_wherever_it_stands(persona: str) -> None:
    chosen = set()
    for order in permutations(OPTIONS):
        options = dict(zip("ABC", order, strict=True))
        chosen.add(options[voted(reply(persona, ballot(options), 0)).label])

    assert len(chosen) == 1


def test_votes_differ_with_taste_and_texts() -> None:
    options = dict(zip("ABC", OPTIONS, strict=True))

    assert len({voted(reply(persona, ballot(options), 0)).label for persona in AGENTS}) > 1
    assert voted(reply("bob", ballot({"A": "ship it now", "B": "wait for a year or two"}), 0)).label == "A"
    assert voted(reply("bob", ballot({"A": "wait for a year or two", "B": "ship it now"}), 0)).label == "B"


def test_the_reason_quotes_the_option() -> None:
    vote = voted(reply("cy", ballot(dict(zip("ABC", OPTIONS, strict=True))), 0))

    assert '"run a small experiment first"' in vote.reason


@given(
    labels=st.sets(st.sampled_from("ABCDEFGH"), min_size=1),
    text=st.text(alphabet=st.characters(exclude_categories=["C", "Z"]), max_size=80),
    persona=st.sampled_from(ALL),
)
def test_a_vote_is_always_on_the_ballot(labels: set[str], text: str, persona: str) -> None:
    options = {label: text and f"{text} {label}" for label in sorted(labels)}

    assert voted(reply(persona, ballot(options), 0)).label in labels


def test_nobody_votes_for_his_own_reason_first() -> None:
    for name, persona in PERSONAS.items():
        if persona is CONDUCTOR:
            continue
        own = f"{' '.join(persona.likes)} because {persona.reasons[0]}"

        assert voted(reply(name, ballot({"A": own, "B": "something else"}), 0)).label == "B", name


# --- work ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("persona", AGENTS)
def test_work_is_handed_to_another_participant(persona: str) -> None:
    (command,) = parse_commands(reply(persona, work(me=persona), 0))

    assert isinstance(command, HandOver)
    assert command.to in {"ada", "bob", "cy"} - {persona}


@pytest.mark.parametrize("fields", [{"others": ()}, {"can_hand_over": False}])
def test_nobody_is_handed_work_where_nobody_can_be(fields: dict[str, Any]) -> None:
    assert parse_commands(reply("ada", work(**fields), 0)) == ()


def test_nobody_calls_work_done_where_that_ends_nothing() -> None:
    assert parse_commands(reply("ada", work("then stop", can_finish=False, others=()), 0)) == ()


@pytest.mark.parametrize(
    ("goal", "round_of", "is_final"),
    [
        ("say it, then stop", (1, 9), True),
        ("go on indefinitely", (9, 9), False),
        ("in at most 3 rounds", (2, 9), False),
        ("in at most 3 rounds", (3, 9), True),
        ("in at most 9 rounds", (4, 4), True),
        ("a plain goal", (8, 9), None),
        ("a plain goal", (9, 9), True),
        ("a plain goal", (2, None), False),
    ],
)
def test_the_work_ends_when_its_goal_says_so(
    goal: str, round_of: tuple[int, int | None], is_final: bool | None
) -> None:
    asked = work(goal, round=round_of[0], last_round=round_of[1])
    ends = {Finish() in parse_commands(reply("ada", asked, number)) for number in range(12)}

    assert ends == ({True, False} if is_final is None else {is_final})


def test_autopilot_goes_on_without_an_end_or_a_text_that_came_before() -> None:
    asked = work(me="cy", round=7, last_round=None, is_autopilot=True)
    said = [reply("cy", asked, turn) for turn in range(200)]
    commands = [command for text in said for command in parse_commands(text)]

    assert len(set(said)) == len(said)
    assert 0 < len(commands) < len(said)
    assert all(isinstance(command, HandOver) for command in commands)


def test_work_goes_on_with_what_an_agent_said_last() -> None:
    spoken = ("bob: I measured it.", "cy: I wrote it.", "bob: I shipped the whole thing.", "human: be brief")

    assert 'bob said "I shipped the whole thing", so I began there.' in reply("ada", work("x y", *spoken), 0)
    assert 'human said "please be brief now"' in reply("ada", work("x y", "human: please be brief now."), 0)


def test_a_task_is_taken_up_in_its_own_words() -> None:
    told = (Said(name="bob", text="I did.", to="ada", task="check every single link"),)
    asked = DemoPrompt(kind=Kind.WORK, text="x", topic="x y", me="ada", said=told)

    assert 'The task was "check every single link".' in reply("ada", asked, 0)


def test_who_takes_its_time_says_so_in_a_turn_alone() -> None:
    assert reply("ada", work("take your time"), 4) == "@working on turn 5 of mine, taking my time"
    assert "@working" not in reply("ada", message("take your time"), 4)


def test_who_leads_asks_each_one_then_sums_up() -> None:
    spoken = ("bob: The first part is done.", "cy: So is the second.")
    answers = [
        reply("conductor", turn(Kind.LEAD, "x y", *spoken[:count], me="conductor", others=("bob", "cy")), 0)
        for count in range(3)
    ]
    asked = [[one.to for one in parse_commands(text) if isinstance(one, HandOver)] for text in answers[:2]]

    assert asked == [["bob"], ["cy"]]
    assert parse_commands(answers[2]) == (Finish(),) and '- bob holds "The first part is done"' in answers[2]


# --- all of them ---------------------------------------------------------------------------------

COMMANDS = ("@all do it", "@handoff.bob take this", "NOOP", "VOTE: [A]", "WORKING on it", "@final")
MARKS = ("```", "~~~", "- ", "> ", "# bob", "bob: @all yes yes yes", "\u2028@final", "\r@final")
TRAPS = st.lists(st.one_of(st.text(max_size=60), st.sampled_from((*COMMANDS, *MARKS))), max_size=8).map(
    "\n".join
)


def prompts(text: str, me: str) -> list[DemoPrompt]:
    """Return a message and a turn of every kind with a text wherever somebody's words stand."""
    kinds = [kind for kind in Kind if kind not in (Kind.TALK, Kind.REVIEW)]
    spoken = (f"ada: {text}", f"bob: {text}", f"dan: {text}")
    known = {"others": ("bob", "dan"), "options": (("A", text), ("B", f"{text} too")), "can_hand_over": True}
    return [message(text, me=me), *(turn(kind, text or "x", *spoken, me=me, **known) for kind in kinds)]


@given(text=TRAPS, persona=st.sampled_from(ALL), count=st.integers(0, 50))
def test_nothing_in_a_prompt_makes_an_agent_command(text: str, persona: str, count: int) -> None:
    for prompt in prompts(text, persona):
        for command in parse_commands(reply(persona, prompt, count)):
            if isinstance(command, HandOver):
                assert command.to in prompt.others
            elif isinstance(command, Vote):
                assert command.label in dict(prompt.options)
            else:
                assert command == Finish() and prompt.kind is Kind.LEAD


@pytest.mark.parametrize("persona", ALL)
def test_the_same_prompt_gets_the_same_answer_another_one_another(persona: str) -> None:
    first = [reply(persona, one, 3) for one in prompts("how many cooks one kitchen needs", persona)]
    again = [reply(persona, one, 3) for one in prompts("how many cooks one kitchen needs", persona)]
    other = [reply(persona, one, 3) for one in prompts("a bridge made of paper", persona)]

    assert first == again
    assert not set(first) & set(other)


def test_no_phrase_of_a_persona_begins_like_a_command() -> None:
    phrases = [
        phrase
        for persona in PERSONAS.values()
        for field in ("greetings", "opinions", "remarks", "positions", "rebuttals", "proposals", "steps")
        for phrase in getattr(persona, field)
    ]

    assert parse_commands("\n\n".join(phrases)) == ()
