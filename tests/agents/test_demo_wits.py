"""What the demo agents say: it depends on the prompt, quotes it, commands nothing by accident."""

import re
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csp.agents.demo.personas import PERSONAS
from csp.agents.demo.prompt_parser import Kind, Said, hear
from csp.agents.demo.responder import quote, reply
from csp.room.agent_text.grammar import Finish, HandOver, Vote, parse_commands

AGENTS = ["ada", "bob", "cy"]
ALL = [*AGENTS, "conductor"]
MODES = [
    "Mode: debate\nTopic: {topic}\nGive your position.",
    "Consensus on the topic below. Write one proposal.\nTopic: {topic}",
    "Mode: collaborate\nGoal: {topic}\nRound 1 of 6\nParticipants: ada, bob, cy",
    "Mode: autopilot\nGoal: {topic}\nRound: 9 (Autopilot)\nParticipants: ada, bob, cy",
    "Write the synthesis.\nTopic: {topic}\nada: {topic}\nbob: {topic}",
    "Digest: {topic}\nada: {topic}",
    "{topic}",
]
OPTIONS = ("keep the logs in one file", "run a small experiment first", "ship it now, undo it later")


def message(text: str, sender: str = "human") -> str:
    return f"[from {sender} #418]\n{text}\n[end #418]"


def turn(text: str) -> str:
    return f"[YOUR TURN #t-17]\n{text}\n[end #t-17]"


def debate(*positions: str, form: str = "{0}: {1}") -> str:
    blocks = "\n\n".join(form.format(*position.split(": ", 1)) for position in positions)
    return turn(f"Mode: debate\nTopic: tabs or spaces\nRound 2 of 3\n\n{blocks}\n\nWrite your rebuttal.")


def ballot(options: dict[str, str], form: str = "[{0}] {1}") -> str:
    lines = "\n".join(form.format(label, text) for label, text in options.items())
    return turn(
        f"The proposals:\n\n{lines}\n\nAnswer with two lines:\nVOTE: [{'/'.join(options)}]\nREASON: why"
    )


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


def test_code_is_answered_with_code_in_a_fence() -> None:
    assert "\n```python\n" in reply("bob", message("Show me the code for that, please."), 0)


def test_the_conductor_writes_no_code() -> None:
    assert "```" not in reply("conductor", message("Show me the code for that, please."), 0)


def test_a_prompt_without_our_lines_is_answered_too() -> None:
    assert '"what is this for"' in reply("ada", "what is this for", 0)


# --- debates -------------------------------------------------------------------------------------


@pytest.mark.parametrize("persona", AGENTS)
def test_a_position_takes_one_of_the_two_sides(persona: str) -> None:
    said = reply(persona, turn("Mode: debate\nTopic: tabs or spaces\nGive your position."), 0)

    assert re.search(r"\*\*(tabs|spaces)\*\*", said)


@pytest.mark.parametrize("persona", AGENTS)
@pytest.mark.parametrize(
    "form",
    [
        "{0}: {1}",
        '- {0} said: "{1}"',
        "## {0}\n\n{1}",
        "### {0}'s position\n{1}",
        "- **{0}**: {1}",
        "**{0}** (round 1): {1}",
        "[#12] {0}: {1}",
        "{0}:\n{1}",
        "> {0}: {1}",
    ],
)
def test_a_rebuttal_names_a_speaker_with_words_of_his(persona: str, form: str) -> None:
    texts = {
        "codex": "Tabs let every reader choose the width they like.",
        "gemini": "Spaces look the same in all editors of the world.",
    }
    said = reply(persona, debate(*(f"{name}: {text}" for name, text in texts.items()), form=form), 1)
    named = [name for name in texts if name in said]

    assert named
    for name in named:
        assert any(words in texts[name] and len(words.split()) >= 3 for words in quotes(said))
    assert not any("rebuttal" in words for words in quotes(said))


def test_other_positions_get_another_rebuttal() -> None:
    one = reply("bob", debate("codex: Tabs let every reader choose the width."), 1)
    other = reply("bob", debate("codex: Nobody has ever died of a wrong indent."), 1)

    assert one != other


def test_an_agent_does_not_argue_with_itself() -> None:
    said = reply("bob", debate("bob: I am for tabs since ever.", "ada: I measure spaces twice a day."), 1)

    assert "I measure spaces twice" in said
    assert "since ever" not in said


def test_a_name_in_the_room_counts_as_its_own() -> None:
    said = reply(
        "bob", debate("bob-2: I am for tabs since ever.", "bob: I measure spaces twice."), 1, "bob-2"
    )

    assert "I measure spaces twice" in said


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


# --- ballots -------------------------------------------------------------------------------------


@pytest.mark.parametrize("persona", ALL)
@pytest.mark.parametrize(
    "form", ["[{0}] {1}", "{0}: {1}", "{0}) {1}", "- **{0}**: {1}", "## Option {0}\n{1}"]
)
def test_a_vote_is_for_a_text_wherever_it_stands(persona: str, form: str) -> None:
    chosen = set()
    for order in permutations(OPTIONS):
        options = dict(zip("ABC", order, strict=True))
        chosen.add(options[voted(reply(persona, ballot(options, form), 0)).label])

    assert len(chosen) == 1


def test_votes_differ_with_taste_and_texts() -> None:
    options = dict(zip("ABC", OPTIONS, strict=True))

    assert len({voted(reply(persona, ballot(options), 0)).label for persona in AGENTS}) > 1
    assert voted(reply("bob", ballot({"A": "ship it now", "B": "wait for a year or two"}), 0)).label == "A"
    assert voted(reply("bob", ballot({"A": "wait for a year or two", "B": "ship it now"}), 0)).label == "B"


def test_the_reason_quotes_the_option() -> None:
    vote = voted(reply("cy", ballot(dict(zip("ABC", OPTIONS, strict=True))), 0))

    assert '"run a small experiment first"' in vote.reason


@pytest.mark.parametrize("persona", ALL)
def test_a_second_ballot_is_voted_on_among_its_own_labels(persona: str) -> None:
    text = "[A] one of them\n[B] not any more\n[C] the other one\n\nOnly the tied ones.\nVOTE: [A/C]"

    assert voted(reply(persona, turn(text), 0)).label in ("A", "C")


@given(
    labels=st.sets(st.sampled_from("ABCDEFGH"), min_size=1),
    text=st.text(alphabet=st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=80),
    persona=st.sampled_from(ALL),
)
def test_a_vote_is_always_on_the_ballot(labels: set[str], text: str, persona: str) -> None:
    options = {label: f"{text} {label}" for label in sorted(labels)}

    assert voted(reply(persona, ballot(options), 0)).label in labels


# --- work ----------------------------------------------------------------------------------------


def work(round_of: str, *, names: str = "ada, bob, cy", mode: str = "collaborate") -> str:
    listed = f"\nParticipants: {names}" if names else ""
    said = "bob: I wrote the first section about installing."
    return turn(f"Mode: {mode}\nGoal: write a README\n{round_of}{listed}\n\n{said}\n\nGo on.")


@pytest.mark.parametrize("persona", AGENTS)
def test_work_is_handed_to_another_participant(persona: str) -> None:
    (command,) = parse_commands(reply(persona, work("Round 1 of 6"), 0))

    assert isinstance(command, HandOver)
    assert command.to in {"ada", "bob", "cy"} - {persona}


@pytest.mark.parametrize(
    "listing",
    [
        "Participants: @ada, `bob` and cy.",
        "Participants (3): ada bob cy",
        "You may hand over to: bob, cy",
        "## Participants\n\n- ada: careful\n- **bob**: blunt\n- cy: contrary",
        "Agents:\n- ada (idle)\n- bob (idle)\n- cy\n\nGo on.",
    ],
)
def test_participants_are_known_however_they_are_listed(listing: str) -> None:
    heard = hear(turn(f"Mode: collaborate\nGoal: x y z\n\n{listing}"), "ada")

    assert heard.others == ("bob", "cy")
    assert heard.said == ()


def test_nobody_is_handed_work_who_was_not_named() -> None:
    assert parse_commands(reply("ada", work("Round 1 of 6", names=""), 0)) == ()


@pytest.mark.parametrize("persona", AGENTS)
def test_the_last_round_is_final(persona: str) -> None:
    assert parse_commands(reply(persona, work("Round 6 of 6"), 5)) == (Finish(),)


def test_autopilot_goes_on_without_an_end_or_a_text_that_came_before() -> None:
    said = [reply("cy", work("Round: 7 (Autopilot)", mode="autopilot"), turn) for turn in range(200)]
    commands = [command for text in said for command in parse_commands(text)]

    assert len(set(said)) == len(said)
    assert 0 < len(commands) < len(said)
    assert all(isinstance(command, HandOver) for command in commands)


# --- the conductor -------------------------------------------------------------------------------


def test_the_conductor_names_every_speaker_with_a_phrase() -> None:
    said = reply("conductor", debate("ada: Measure it first of all.", "bob: Just ship the thing."), 0)

    assert '- ada holds "Measure it first of all"' in said
    assert '- bob holds "Just ship the thing"' in said


def test_a_digest_is_answered_in_two_lines_at_most() -> None:
    said = reply(
        "conductor", message("Digest: round 1 of 2 ended\nada: Measure it first of all.", "system"), 0
    )

    assert len(said.splitlines()) <= 2
    assert '"Measure it first of all"' in said


def test_the_conductor_hands_over_where_it_leads() -> None:
    (command,) = parse_commands(reply("conductor", work("Round 1 of 6", mode="orchestrator"), 0))

    assert isinstance(command, HandOver)


# --- all of them ---------------------------------------------------------------------------------

TRAPS = st.lists(
    st.one_of(
        st.text(max_size=60),
        st.sampled_from(
            [
                "@all do it now please",
                "@handoff.bob take this over",
                "NOOP",
                "VOTE: [A]",
                "WORKING on it",
                "@final",
            ]
        ),
        st.sampled_from(
            ["```", "~~~", "- ", "> ", "# bob", "bob: @all yes yes yes", "\u2028@final", "\r@final"]
        ),
    ),
    max_size=8,
).map("\n".join)


@pytest.mark.parametrize("mode", MODES)
@given(text=TRAPS, persona=st.sampled_from(ALL), count=st.integers(0, 50))
def test_nothing_in_a_prompt_makes_an_agent_command(mode: str, text: str, persona: str, count: int) -> None:
    allowed = {"ada", "bob", "cy"} if "Participants" in mode else set()
    for prompt in (message(mode.replace("{topic}", text)), turn(mode.replace("{topic}", text))):
        heard = hear(prompt, persona)
        for command in parse_commands(reply(persona, prompt, count)):
            if isinstance(command, HandOver):
                assert command.to in allowed | set(heard.others)
            elif isinstance(command, Vote):
                assert command.label in dict(heard.options)
            else:
                assert command == Finish() and heard.kind is Kind.WORK


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("persona", ALL)
def test_the_same_prompt_gets_the_same_answer_another_one_another(mode: str, persona: str) -> None:
    first, second = (
        turn(mode.format(topic=topic))
        for topic in ("how many cooks one kitchen needs", "a bridge made of paper")
    )

    assert reply(persona, first, 3) == reply(persona, first, 3)
    assert reply(persona, first, 3) != reply(persona, second, 3)


def test_lines_that_are_nobodys_words_are_not_taken_for_them() -> None:
    heard = hear(
        turn("topic: a b c\nround: 2 of 3\nnote: be brief now\ncodex: I am somebody\nhttps://x.org"), "ada"
    )

    assert heard.said == (Said(name="codex", text="I am somebody\nhttps://x.org"),)
    assert (heard.topic, heard.round, heard.last_round) == ("a b c", 2, 3)


def test_no_phrase_of_a_persona_begins_like_a_command() -> None:
    phrases = [
        phrase
        for persona in PERSONAS.values()
        for field in ("greetings", "opinions", "remarks", "positions", "rebuttals", "proposals", "steps")
        for phrase in getattr(persona, field)
    ]

    assert parse_commands("\n\n".join(phrases)) == ()
