"""The demo agents' answers to what the modes really ask, played in a room without a shell around it."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from csp.agents.demo.demo_prompt import DemoPrompt, Kind, Said, asked, message
from csp.agents.demo.responder import reply
from csp.prompt_files import load_prompts
from csp.protocol.enums import ALL, HUMAN, ROUTER, AgentId
from csp.room.agent_text import Finish, HandOver, Noop, Working, parse_commands
from csp.room.agent_text import ModeRequest as ModeSet
from csp.room.commands import RoomRules
from csp.room.sessions.session_views import mode_view
from csp.room.visibility import can_see_item
from tests.room.playing import BOSS, Play

ADA, BOB, CY = (AgentId(name) for name in ("ada", "bob", "cy"))
PERSONA = {ADA: "ada", BOB: "bob", CY: "cy", BOSS: "conductor"}
TOPIC = "Shall we use tabs or spaces in the parser?"
POSITIONS = {
    ADA: "Spaces look the same in all editors of the world.\n\n1. they do\n2. really",
    BOB: "Tabs let every reader choose the width they like.",
    CY: "Nobody has ever died of a wrong indent, I believe.",
}


class Room(Play):
    """A room in which the demo agents are asked with the prompts of the modes."""

    def __init__(self) -> None:
        super().__init__(ADA, BOB, CY, rules=RoomRules(prompts=load_prompts()))
        self.counts = dict.fromkeys(PERSONA, 0)

    def begin(self, mode: str, **options: Any) -> None:
        self.start(mode, topic=options.pop("topic", TOPIC), **options)

    def asked(self, agent: AgentId) -> DemoPrompt:
        """Return what an agent that owes a reply gets to know."""
        ask = self.asks(agent)[-1]
        text = f"[YOUR TURN #{ask.turn}]\n{ask.text}\n[end #{ask.turn}]"
        said: list[Said] = []
        for one in self.session.items:
            if not can_see_item(self.session, one, agent, self.room.sessions):
                continue
            if one.sender == ROUTER and said:
                said[-1] = replace(said[-1], to=one.target, task=one.text)
            else:
                said.append(Said(name=one.sender, text=one.text))
        return asked(text, agent, mode_view(self.room, self.session, self.rules), tuple(said))

    def speak(self, agent: AgentId) -> str:
        """Let an agent answer its turn."""
        said = reply(PERSONA[agent], self.asked(agent), self.counts[agent])
        self.counts[agent] += 1
        self.reply(agent, said)
        return said

    def run(self, most: int = 40) -> list[tuple[AgentId, str]]:
        """Let all answer until the session ends, or `most` have."""
        said: list[tuple[AgentId, str]] = []
        while not self.session.is_over and len(said) < most:
            agent = self.waiting[0]
            said.append((agent, self.speak(agent)))
        return said


@pytest.fixture
def room() -> Room:
    return Room()


def quotes(text: str) -> list[str]:
    return [words for words in re.findall(r'"([^"]+)"', text) if words not in TOPIC]


# --- debate --------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", POSITIONS)
def test_a_position_takes_a_side_of_the_topic(room: Room, agent: AgentId) -> None:
    room.begin("debate")

    assert re.search(r"\*\*(tabs|spaces)\*\*", room.speak(agent))


@pytest.mark.parametrize("agent", POSITIONS)
def test_a_rebuttal_quotes_the_positions_of_its_prompt(room: Room, agent: AgentId) -> None:
    room.begin("debate", agents=(agent, *(other for other in POSITIONS if other != agent)))
    for name, text in POSITIONS.items():
        room.reply(name, text)
    others = [text for name, text in POSITIONS.items() if name != agent]
    found = quotes(room.speak(agent))

    assert found
    assert all(any(words in text for text in others) and len(words.split()) >= 3 for words in found)


def test_other_positions_get_another_rebuttal() -> None:
    said = []
    for text in ("Tabs are fine for me since ever.", "Let the formatter decide about that."):
        room = Room()
        room.begin("debate")
        for name in POSITIONS:
            room.reply(name, text)
        said.append(room.speak(ADA))

    assert said[0] != said[1]
    assert "Let the formatter decide" in said[1] and "Let the formatter decide" not in said[0]


def test_a_word_of_the_human_is_no_position(room: Room) -> None:
    room.begin("debate")
    room.say(HUMAN, ALL, "Please think of the tests.")

    assert room.asked(ADA).kind is Kind.POSITION


def test_a_head_in_somebodys_words_is_no_part_of_the_prompt(room: Room) -> None:
    room.begin("debate", topic="Shall we?\n\nTopic:\n\nsomething else")
    room.reply(ADA, "I say no to it.\n\nTopic:\n\nProposal A:\nmine\n\nQuestion:\n\ncheese")
    room.reply(BOB, "I say yes to it.")
    room.reply(CY, "I say nothing to it.")
    room.speak(ADA)
    heard = room.asked(BOB)

    assert heard.topic == "Shall we?\n\nTopic:\n\nsomething else"
    assert (heard.kind, heard.options) == (Kind.REBUTTAL, ())


# --- ballots -------------------------------------------------------------------------------------


def test_a_vote_names_a_label_of_its_ballot_but_not_its_own(room: Room) -> None:
    room.begin("consensus")
    room.run()

    assert room.ended == "done"
    assert len(room.session.votes) == 3
    owners = {one.label: one.agent for one in room.session.counted}
    assert all(owners[vote.label] != agent for agent, vote in room.session.votes.items())


def test_a_vote_follows_the_text_not_the_label() -> None:
    labels = {}
    for taste in (ADA, CY):
        room = Room()
        room.begin("consensus")
        for name in POSITIONS:
            room.reply(name, "Ship it now, undo it in one week." if name == taste else "Wait a year or two.")
        room.speak(BOB)
        labels[taste] = room.session.votes[BOB].label
        owners = {one.label: one.agent for one in room.session.stage.candidates}
        assert owners[labels[taste]] == taste

    assert labels[ADA] != labels[CY]


def test_a_second_chance_to_vote_is_taken(room: Room) -> None:
    room.begin("consensus")
    for name in POSITIONS:
        room.reply(name, f"What {name} wants.")
    room.reply(ADA, "I cannot decide.")
    room.speak(ADA)

    assert room.session.votes[ADA].label in "ABC"


# --- work ----------------------------------------------------------------------------------------


def test_work_is_handed_on_until_somebody_calls_it_final(room: Room) -> None:
    room.begin("collaborate")
    said = room.run()
    commands = [parse_commands(text)[-1] for _, text in said]

    assert room.ended == "final"
    assert all(isinstance(one, HandOver) for one in commands[:-1])
    assert commands[-1] == Finish()
    assert [agent for agent, _ in said[1:]] == [one.to for one in commands[:-1] if isinstance(one, HandOver)]
    assert len({agent for agent, _ in said}) > 1


def test_a_step_builds_on_the_one_before(room: Room) -> None:
    room.begin("collaborate", topic="write it without end")
    (_, first), (_, second) = room.run(most=2)

    assert f'said "{" ".join(first.split()[:3])}' in second
    assert "The task was" in second


@pytest.mark.parametrize(
    ("topic", "turns", "reason"),
    [
        ("Summarize this in 1 sentence, then stop.", 1, "final"),
        ("Write a tale, alternate until done (≤2 rounds).", 2, "final"),
        ("Improve it indefinitely.", 6, "cap_reached"),
        ("Answer in malformed JSON.", 1, "malformed"),
    ],
)
def test_work_ends_as_its_goal_says(room: Room, topic: str, turns: int, reason: str) -> None:
    room.begin("collaborate", topic=topic)

    assert (len(room.run()), room.ended) == (turns, reason)


def test_an_envelope_is_written_where_the_goal_asks_for_it(room: Room) -> None:
    room.begin("collaborate", topic="Answer in JSON, at most 2 rounds.")
    (_, first), (_, last) = room.run()

    assert set(json.loads(first)) == {"message", "handoff"}
    assert json.loads(last)["final"] is True
    assert room.ended == "final"


def test_autopilot_goes_on_past_every_bound(room: Room) -> None:
    room.begin("autopilot")
    said = room.run(most=150)

    assert len({text for _, text in said}) == 150
    assert not any(Finish() in parse_commands(text) for _, text in said)
    assert {agent for agent, _ in said} == {ADA, BOB, CY}


def test_round_robin_hands_nothing_over(room: Room) -> None:
    room.begin("round_robin", topic="go on without end", steps=4)
    said = room.run()

    assert [agent for agent, _ in said] == [ADA, BOB, CY, ADA]
    assert not any(parse_commands(text) for _, text in said)


def test_a_request_to_one_is_answered_as_a_message_is(room: Room) -> None:
    room.begin("single")
    ((agent, said),) = room.run()

    assert (agent, room.ended) == (ADA, "done")
    assert '"Shall we use tabs or spaces in' in said


@pytest.mark.parametrize("mode", ["collaborate", "debate"])
def test_more_time_is_asked_for_where_the_goal_grants_it(room: Room, mode: str) -> None:
    room.begin(mode, topic="Take your time with this.")

    assert isinstance(parse_commands(room.speak(ADA))[0], Working)
    assert ADA in room.waiting


# --- the conductor -------------------------------------------------------------------------------


def test_the_conductor_hears_everybody_then_calls_it_final(room: Room) -> None:
    room.join_boss()
    room.begin("orchestrator")
    said = room.run()

    assert [agent for agent, _ in said] == [BOSS, ADA, BOSS, BOB, BOSS, CY, BOSS]
    assert room.ended == "final"
    assert all(f'- {name} holds "' in said[-1][1] for name in POSITIONS)


def test_the_conductor_sums_a_debate_up(room: Room) -> None:
    room.join_boss()
    room.begin("debate", rounds=1)
    for name, text in POSITIONS.items():
        room.reply(name, text)
    said = room.speak(BOSS)

    assert '- bob holds "Tabs let every reader choose the width"' in said
    assert room.session.synthesis == said


def test_the_conductor_has_nothing_to_say_to_a_digest() -> None:
    digest = "[from system #9]\n[CSP: debate s-4: round 1 is over. - ada: Tabs let every reader]\n[end #9]"

    assert parse_commands(reply("conductor", message(digest, "conductor"), 0)) == (Noop(),)


def test_the_conductor_sets_the_mode_a_person_asks_for() -> None:
    wish = '[from human #9]\nStart a debate about "tabs or spaces" in 2 rounds.\n[end #9]'
    (command,) = parse_commands(reply("conductor", message(wish, "conductor"), 0))

    assert command == ModeSet(mode="debate", topic="tabs or spaces", rounds=2)
    assert parse_commands(reply("ada", message(wish, "ada"), 0)) == ()
    by_bob = message(wish.replace("human", "bob"), "conductor")
    assert parse_commands(reply("conductor", by_bob, 0)) == ()
