"""What a demo agent makes out of a prompt, and how it chooses what to say."""

import pytest

from csp.agents.demo.personas import CONDUCTOR, PERSONAS
from csp.agents.demo.prompt_parser import Heard, Kind, Said, hear
from csp.agents.demo.responder import MAX_QUOTE, MAX_TOPIC, quote, reply
from csp.room.agent_text.grammar import Finish, HandOver, parse_commands

SHAPE = "\n\nAnswer in plain text."


def turn(text: str) -> str:
    return f"[YOUR TURN #t-17]\n{text}\n[end #t-17]"


def message(text: str, sender: str = "human") -> str:
    return f"[from {sender} #418]\n{text}\n[end #418]"


def asked(
    intro: str = "You are ada. You work with others.",
    *,
    goal: str = "write a README",
    parts: str = "",
    window: str = "bob: I wrote the first half.",
    todo: str = "Do your part, then hand over to another one, or end it with final.",
) -> Heard:
    """Hear a prompt of one of our own modes."""
    body = f"{intro}\n\nTopic:\n{goal}\n\n{parts}What was said since then:\n{window}\n\n{todo}{SHAPE}"
    return hear(turn(body), "ada")


# --- prompts of our own modes --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("intro", "parts", "kind"),
    [
        ("You are ada.", "", Kind.WORK),
        ("You are ada in a debate.", "", Kind.POSITION),
        (
            "You are ada in a debate.",
            "The last positions of the others:\nbob said:\nShip it.\n\n",
            Kind.REBUTTAL,
        ),
        ("You look for a common solution.", "", Kind.PROPOSAL),
        ("You look for a common solution.", "Proposal A:\nShip it.\n\n", Kind.VOTE),
        ("You write its synthesis", "", Kind.SYNTHESIS),
        ("You lead a session", "", Kind.LEAD),
    ],
)
def test_a_mode_asks_for_what_its_first_words_say(intro: str, parts: str, kind: Kind) -> None:
    assert asked(intro, parts=parts).kind is kind


def test_a_request_of_the_room_is_answered_as_a_message() -> None:
    body = (
        "You are ada.\n\nAnswer this request from the room:\nwhat is up\n\nWhat was said before:\nx\n\ny\n\nz"
    )
    heard = hear(turn(body), "ada")

    assert (heard.kind, heard.text, heard.topic) == (Kind.TALK, "what is up", "what is up")


def test_all_parts_of_a_mode_are_heard() -> None:
    heard = asked(
        "You are ada. Also taking part: bob, cy. This is round 2 of 5.",
        parts="The last word of each:\nbob said:\nShip it.\n\n",
        window="cy: No.\n\nrouter -> ada: check the links\n\nada: I did.",
    )

    assert (heard.topic, heard.task, heard.others) == ("write a README", "check the links", ("bob", "cy"))
    assert (heard.round, heard.last_round, heard.is_autopilot, heard.is_turn) == (2, 5, False, True)
    assert [(one.name, one.text) for one in heard.said] == [
        ("bob", "Ship it."),
        ("cy", "No."),
        ("ada", "I did."),
    ]
    assert [one.name for one in heard.theirs] == ["bob", "cy"]


@pytest.mark.parametrize(
    ("intro", "todo", "can_hand_over", "can_finish"),
    [
        ("", "Hand over to one, or end it with final.", True, True),
        ("", "Do your part.", False, False),
        ("(Autopilot)", "Do your part.", False, True),
    ],
)
def test_only_what_a_mode_offers_can_be_done(
    intro: str, todo: str, can_hand_over: bool, can_finish: bool
) -> None:
    heard = asked(f"You are ada. {intro}", todo=todo)

    assert (heard.can_hand_over, heard.can_finish) == (can_hand_over, can_finish)
    assert heard.is_autopilot == bool(intro)


# --- prompts of others ---------------------------------------------------------------------------


def test_our_own_lines_are_no_part_of_a_message() -> None:
    heard = hear(message("hello there"), "ada")

    assert (heard.text, heard.sender, heard.kind, heard.is_turn) == ("hello there", "human", Kind.TALK, False)
    assert hear("  [end #x] stays\n", "ada").text == "[end #x] stays"


def test_nobody_hands_work_to_a_person_or_to_all() -> None:
    heard = hear(turn("Mode: collaborate\nGoal: x\nParticipants: human, ada, bob, orchestrator, all"), "ada")

    assert heard.others == ("bob",)


def test_words_below_a_heading_go_on_over_blank_lines() -> None:
    body = 'Mode: debate\nTopic: tabs\n\n## bob\n\nFirst.\n\nSecond.\n\ncy: "Third."\n\nYour turn.'
    heard = hear(turn(body), "ada")

    assert heard.said == (Said(name="bob", text="First.\n\nSecond."), Said(name="cy", text="Third."))
    assert heard.kind is Kind.REBUTTAL


def test_what_a_person_says_is_nothing_to_rebut() -> None:
    assert hear(turn("Mode: debate\nTopic: tabs\n\nhuman: be brief"), "ada").kind is Kind.POSITION


@pytest.mark.parametrize("text", ["Digest: round 1 ended", "[CSP: nothing new]", "**Digest** of today"])
def test_a_digest_is_known(text: str) -> None:
    assert hear(message(text, "system"), "conductor").kind is Kind.DIGEST


def test_a_digest_of_ours_needs_no_answer() -> None:
    assert reply("conductor", message("[CSP: nothing new]", "system"), 0) == "NOOP"


def test_only_options_that_the_request_names_are_on_the_ballot() -> None:
    body = "[A] one way\n[B] another way\n[C] a third\n\n[A] one way, explained again\n\nVOTE: [A/C]"

    assert hear(turn(body), "ada").options == (("A", "one way"), ("C", "a third"))
    assert hear(turn("VOTE: [A/B]"), "ada").options == (("A", ""), ("B", ""))
    assert hear(turn("[A] one\n[B] two\n\nVOTE: [X]"), "ada").options == (("A", "one"), ("B", "two"))
    assert hear(turn("[A] one\n[B] two\n\nVOTE: A"), "ada").options == (("A", "one"), ("B", "two"))


# --- what is said to it --------------------------------------------------------------------------


def test_a_quote_and_a_topic_are_short() -> None:
    long = " ".join(["wonderfully"] * 20)
    quoted = quote(long)
    position = reply("ada", turn(f"Mode: debate\nTopic: {long} end"), 0)

    assert quoted == " ".join(["wonderfully"] * 6) and len(quoted) <= MAX_QUOTE
    assert quote("x" * 90 + " " + "y" * 90 + " " + "z" * 90 + " w").count(" ") == 2
    assert (MAX_QUOTE, MAX_TOPIC) == (80, 90)
    assert 'wonderfully …"' in position and long not in position


def test_who_takes_its_time_says_so_in_a_turn_alone() -> None:
    text = "Mode: collaborate\nGoal: take your time\nParticipants: ada, bob"

    assert reply("ada", turn(text), 4) == "@working on turn 5 of mine, taking my time"
    assert "@working" not in reply("ada", message(text), 4)


def test_only_a_person_sets_the_mode_and_only_by_the_conductor() -> None:
    wish = 'start debate on "tabs" in 3 rounds'

    assert reply("conductor", message(wish), 0) == '@mode.set debate "tabs" --rounds 3'
    assert "@mode" not in reply("conductor", message(wish, "bob"), 0)
    assert "@mode" not in reply("ada", message(wish), 0)


def collaborating(goal: str, round_of: str = "Round 1 of 9", said: str = "") -> str:
    return turn(f"Mode: collaborate\nGoal: {goal}\n{round_of}\nParticipants: ada, bob\n\n{said}\n\nGo on.")


@pytest.mark.parametrize(
    ("goal", "round_of", "is_final"),
    [
        ("say it, then stop", "Round 1 of 9", True),
        ("go on indefinitely", "Round 9 of 9", False),
        ("in at most 3 rounds", "Round 2 of 9", False),
        ("in at most 3 rounds", "Round 3 of 9", True),
        ("in at most 9 rounds", "Round 4 of 4", True),
        ("a plain goal", "Round 8 of 9", None),
        ("a plain goal", "Round 9 of 9", True),
        ("a plain goal", "Round 2", False),
    ],
)
def test_the_work_ends_when_its_goal_says_so(goal: str, round_of: str, is_final: bool | None) -> None:
    answers = [reply("ada", collaborating(goal, round_of), number) for number in range(12)]
    ends = {Finish() in parse_commands(answer) for answer in answers}

    assert ends == ({True, False} if is_final is None else {is_final})


def test_work_goes_on_with_what_was_said_last() -> None:
    said = "bob: I measured the whole thing.\n\nhuman: please be brief now.\n\nada: I wrote it down."

    assert 'bob said "I measured the whole thing", so I began there.' in reply(
        "ada", collaborating("x y z", said=said), 0
    )
    alone = reply("ada", collaborating("x y z", said="human: please be brief now."), 0)
    assert 'human said "please be brief now"' in alone


def test_who_speaks_again_is_the_last_one() -> None:
    said = "bob: The first thing here.\n\ncy: The second thing here.\n\nbob: The third thing here."

    assert 'bob said "The third thing here"' in reply("ada", collaborating("x y z", said=said), 0)


def test_nobody_is_handed_work_where_that_is_not_offered() -> None:
    intro = "You are ada. Also taking part: bob. This is round 1 of 9."
    body = f"{intro}\n\nTopic:\nx y z\n\nWhat was said since then:\nbob: Hm.\n\n{{}}{SHAPE}"
    offered = reply("ada", turn(body.format("Do your part, then hand over to another one.")), 0)
    not_offered = reply("ada", turn(body.format("Do your part.")), 0)

    assert [type(one) for one in parse_commands(offered)] == [HandOver]
    assert parse_commands(not_offered) == ()


def test_a_task_is_taken_up_in_its_own_words() -> None:
    intro = "You are ada. Also taking part: bob. This is round 1 of 9."
    window = "router -> ada: check every single link"
    body = f"{intro}\n\nTopic:\nx y z\n\nWhat was said since then:\n{window}\n\nDo it.{SHAPE}"

    assert 'The task was "check every single link".' in reply("ada", turn(body), 0)


def leading(*said: str) -> str:
    intro = "You lead a session. You can ask: bob, cy."
    window = "\n\n".join(said) or "human: begin"
    return turn(f"{intro}\n\nTopic:\nx y z\n\nWhat was said since then:\n{window}\n\nLead.{SHAPE}")


def test_who_leads_asks_each_one_then_sums_up() -> None:
    first = reply("conductor", leading(), 0)
    second = reply("conductor", leading("bob: The first part is done."), 1)
    last = reply("conductor", leading("bob: The first part is done.", "cy: So is the second."), 2)

    assert [command.to for command in parse_commands(first) if isinstance(command, HandOver)] == ["bob"]
    assert [command.to for command in parse_commands(second) if isinstance(command, HandOver)] == ["cy"]
    assert parse_commands(last) == (Finish(),) and '- bob holds "The first part is done"' in last


def test_of_a_long_digest_four_are_named() -> None:
    said = "\n".join(f"agent-{letter}: I have something to say." for letter in "abcdef")
    answer = reply("conductor", message(f"Digest: today\n{said}", "system"), 0)

    assert answer.count("I have something to say") == 4


def test_nobody_votes_for_his_own_reason_first() -> None:
    for name, persona in PERSONAS.items():
        if persona is CONDUCTOR:
            continue
        own = f"{' '.join(persona.likes)} because {persona.reasons[0]}"
        body = f"[A] {own}\n[B] something else entirely\n\nVOTE: [A/B]"

        assert reply(name, turn(body), 0).startswith("VOTE: [B]"), name


@pytest.mark.parametrize("text", ["write a function", "list the steps"])
def test_the_conductor_adds_nothing_to_its_words(text: str) -> None:
    answer = reply("conductor", message(text), 0)

    assert "```" not in answer and "My points" not in answer
    assert "\n" in reply("ada", message(text), 0)
