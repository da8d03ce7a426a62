"""The tests of what the room answers to a query."""

from hypothesis import given
from hypothesis import strategies as st

from csp.prompt_files import load_prompts
from csp.protocol.enums import AgentId, MessageId, SessionAction
from csp.protocol.events import AnyEvent, NoticePosted, Unknown
from csp.room.orchestrator import MAX_ANSWER, digest, log_text
from tests.room.live import CLAUDE, CODEX, GEMINI
from tests.room.playing import Play

PROMPTS = load_prompts()


def event(seq: int, text: str) -> AnyEvent:
    return NoticePosted(seq, 1.0, MessageId("x"), AgentId("human"), AgentId("claude"), "default", text)


def test_log_is_oldest_first_in_one_bracket() -> None:
    assert log_text([event(3, "one\n  two"), event(12, "three")]).split("\n") == [
        "[CSP: the latest messages that concern you, oldest first",
        "#3 human -> claude: one two",
        "#12 human -> claude: three]",
    ]


def test_empty_log_says_so() -> None:
    assert log_text([]) == "[CSP: there are no messages that concern you yet]"


def test_event_of_a_newer_version_is_left_out() -> None:
    assert log_text([Unknown(1, 1.0, "newer")]) == log_text([])


def test_long_text_is_cut() -> None:
    line = log_text([event(3, "x" * 1000)]).splitlines()[1]

    assert len(line) == 301
    assert line.endswith("x…]")


def test_short_text_is_not_cut() -> None:
    assert "…" not in log_text([event(3, "x" * 270)])


def test_text_of_spaces_that_goes_on_is_marked() -> None:
    assert "…" in log_text([event(3, " " * 300 + "x")])


def test_of_too_much_the_newest_is_told() -> None:
    text = log_text([event(seq, f"{seq} " + "x" * 250) for seq in range(100)])

    assert 1600 < len(text) <= 2000
    assert [line.split()[0] for line in text.splitlines()[1:]] == [f"#{seq}" for seq in range(93, 100)]


@given(st.lists(st.text(max_size=400), max_size=30))
def test_no_answer_is_too_long_or_can_begin_a_command(texts: list[str]) -> None:
    text = log_text([event(seq, said) for seq, said in enumerate(texts)])

    assert len(text) <= 2000
    assert text.startswith("[CSP: ") and text.endswith("]")
    assert all(line.startswith(("[CSP: ", "#")) for line in text.split("\n"))


# --- the digest of a session ---------------------------------------------------------------------


def digest_of(play: Play, *reasons: str) -> str:
    return digest(PROMPTS, play.session, reasons or ("round 1 is over",))


def test_digest_names_mode_round_words_and_what_is_waited_for() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("debate", topic="tabs or\nspaces", rounds=3)
    play.reply_all("I am {0},\n\n  for once")

    assert digest_of(play, "round 1 is over", "codex timed out").split("\n") == [
        f"[CSP: digest of debate {play.session.id}, Round 2 of 3]",
        "Topic: tabs or spaces",
        "What happened: round 1 is over; codex timed out.",
        "",
        "- claude: I am claude, for once",
        "- codex: I am codex, for once",
        "",
        "Now: responses, waiting for claude.",
        "",
        "You were woken because of this. If action is needed, use one of your commands, or explain it in "
        "one sentence. Otherwise answer NOOP.",
    ]


def test_digest_has_nothing_of_a_sealed_phase() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("debate", rounds=2)
    play.reply(CLAUDE, "a secret")

    assert "secret" not in digest_of(play)
    assert "waiting for codex" in digest_of(play)


def test_digest_of_a_paused_session_says_so() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("autopilot", topic="")
    play.steer(SessionAction.PAUSE)

    assert "Topic: (none)" in digest_of(play)
    assert "Now: turns (paused), waiting for claude." in digest_of(play)


def test_digest_shows_votes_once_they_are_in_and_not_in_a_second_ballot() -> None:
    play = Play(CLAUDE, CODEX, GEMINI)
    play.start("consensus", synth="claude")
    play.reply_all("plan of {0}")
    for agent, label in zip((CLAUDE, CODEX, GEMINI), "ABC", strict=True):
        play.reply(agent, f"VOTE: [{label}]\nREASON: because of {label}")
    assert play.session.stage.is_again
    assert "Votes" not in digest_of(play)
    for agent in (CLAUDE, CODEX, GEMINI):
        play.reply(agent, "VOTE: [A]\nREASON: so be it")

    text = digest_of(play)
    assert "Votes: A (" in text and "so be it" in text
    assert "Now: synthesis, waiting for claude." in text
    play.reply(CLAUDE, "this is the plan")
    assert "Synthesis: this is the plan" in digest_of(play)
    assert "Now: it has ended: done." in digest_of(play)
    assert "- codex: plan" not in digest_of(play)


def test_digest_is_short_however_much_was_said() -> None:
    agents = [AgentId(f"agent-{number:02}") for number in range(30)]
    play = Play(*agents)
    play.start("debate", topic="long " * 1000, rounds=2)
    play.reply_all("{0} " + "words " * 5000)
    text = digest_of(play, *(f"reason {number} " * 20 for number in range(50)))

    assert len(text) <= MAX_ANSWER
    assert "Now: responses" in text
    assert text.count("\n- agent-") == 30


def test_nobody_waits_for_a_session_that_is_being_moved() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("round_robin")
    session = play.session
    idle = type(session)(
        session.id, session.seq, session.thread, session.setup, session.started_at, session.agents
    )

    assert "waiting for nobody" in digest(PROMPTS, idle, ["x"])
