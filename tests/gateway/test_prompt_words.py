"""Each prompt says what an agent has to know; what is left out here, no agent would ever do.

The words are those that the room reads again (commands, keywords, forms), the limits, and what is asked
for. How the rest is put may change without a test.
"""

from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent.parent
GOAL: Final = "Goal, in the words of the person who asked for it: {goal}"
LAST: Final = "What was said last, oldest first: {window}"
COMMANDS: Final = (
    "@send.NAME text say something to one participant",
    "@all text say something to everybody",
    "at the very start of a line",
    "outside code blocks and quotes",
)
WORKING: Final = "if you need more time, answer only `@working`"
ENDS: Final = "Your answer is posted by itself.", "End with your answer, nothing after it."
TURNS: Final = "turn-based session that a router manages", "Also taking part: {others}"
BUILDER: Final = "You are the builder of run {run}. Your name is `{agent}`."
REVIEWER: Final = "You are the reviewer of run {run}. Your name is `{agent}`."
TEST: Final = "Test command, run by CSP after each step: {test}"
JSON_FORM: Final = "Answer with one JSON object of this form, of which only `message` is needed:"
JSON_ONLY: Final = "Return JSON only per schema, no extra text."
LINES: Final = (
    "lines that begin with these words in capitals, at the very start of a line, outside code blocks"
)
VOTE: Final = "the letter being one of {labels}: VOTE: [X] REASON: one sentence"

MESSAGE: Final = (
    '{{"schema_version": "0.1", "sender": "{}", "run_id": "{{run}}", "message_type": "...", "body": {{...}}}}'
)

WORDS: Final[dict[str, tuple[str, ...]]] = {
    "api": (
        *COMMANDS,
        "You are the participant `{agent}`",
        "Your answer is posted to the room by itself",
        "You have no tools, no files, no memory",
        "NOOP you have nothing to say",
        "Thanks and confirmations need no command",
    ),
    "assist": (
        GOAL,
        "Your name is `{agent}`",
        "the last task from the router is yours: {window}",
        "{board}",
        "Do your task",
    ),
    "autopilot": (
        GOAL,
        LAST,
        *TURNS,
        "It goes on until a person stops it.",
        "hand over to it with a task of one sentence",
    ),
    "ballot": (
        "Question: {goal}",
        "{proposals}",
        "What people have said meanwhile: {window}",
        "letters instead of names",
        VOTE,
    ),
    "board": ("From the whiteboard", "oldest first: {hits}"),
    "build_end": (
        BUILDER,
        GOAL,
        LAST,
        "The work is accepted.",
        "{why}",
        "`END:`",
        "Change nothing any more.",
    ),
    "build_plan": (
        *(BUILDER, GOAL, LAST, TEST, "{why}", "`PLAN:`, in at most ten steps", "Change no file yet."),
        *(
            "You will work in this directory: {place}",
            "What the reviewer said of the plan so far: {feedback}",
        ),
    ),
    "build_step": (
        *(BUILDER, GOAL, LAST, "The plan: {plan}", "What the reviewer said of the plan: {feedback}", "{why}"),
        *("these are what a revision is about: {findings}", "Your work so far: {work}"),
        *(
            "Work only in this directory: {place}",
            "Do not commit, do not change branches",
            "runs the tests ({test})",
        ),
        *("`DONE:` when the work is ready for review", "`STEP:` if it is not yet"),
    ),
    "builder": (
        *(LINES, "PLAN: the plan in one sentence, then one step a line as a numbered list"),
        *(
            "STEP: what you have done, if more steps follow",
            "DONE: what you have done, when all of it is ready",
        ),
        *("METRIC: name = value", "END: what came out of it"),
        MESSAGE.format("builder"),
    ),
    "collaborate": (
        *(GOAL, LAST, *TURNS, "hand over to it with a task of one sentence", "say that it is final"),
        "Without a handoff the session ends.",
    ),
    "consensus": (
        *(
            "Question: {goal}",
            "so far, oldest first: {window}",
            "Propose one solution, in at most 300 words.",
        ),
        *(
            "Nobody sees what the others propose before all have spoken; then all vote.",
            "Do not say who you are",
        ),
    ),
    "debate": (
        *(
            "Topic: {goal}",
            "so far, oldest first: {window}",
            "Nobody sees what the others say before all have spoken.",
        ),
        "Present your position with your best arguments, in at most 300 words.",
    ),
    "digest": (
        *(
            "[CSP: digest of {mode} {session}, {label}]",
            "Topic: {goal}",
            "What happened: {why}",
            "{positions}",
        ),
        *("{votes}", "Now: {now}", "Otherwise answer NOOP."),
    ),
    "envelope": (
        *(
            JSON_FORM,
            JSON_ONLY,
            '{"message": "what all shall read", "handoff": {"to": "one of: {others}", "task":',
        ),
        '"final": false}',
    ),
    "last_line": (*ENDS, "add a line `@final`", WORKING),
    "lines": (
        *ENDS,
        "add a line `@handoff.NAME task`, NAME being one of {others}",
        "a line `@final`",
        WORKING,
    ),
    "message": (JSON_FORM, JSON_ONLY, '{"message": "what all shall read", "final": false}'),
    "orchestrate": (
        *(
            GOAL,
            LAST,
            "{board}",
            "You lead a session.",
            "You can ask: {others}.",
            "you say who does what next",
        ),
        *("Hand over to the one who should go next, with a task of one sentence.", "say that it is final"),
    ),
    "orchestrator": (
        *(
            *COMMANDS,
            "you do not do their work yourself",
            "begins with `[CSP: digest of ...]`",
            "@mode.status",
        ),
        *(
            '@mode.set debate "topic" --rounds 2 --agents a,b start a mode',
            "@handoff.NAME task give the next turn",
        ),
        *("@query.log 10 get the last lines", "@final the work is done", "NOOP nothing needs to be done"),
        *("`VOTE: [A]` with a line `REASON: ...` below it", "Do not announce or count them again."),
        *(
            "If two stay unanswered, the human is told.",
            "- freeform:",
            "- debate:",
            "- consensus:",
            "- orchestrator:",
        ),
    ),
    "repair_envelope": ("not the JSON object that was asked for", "Give the same answer once more."),
    "repair_review": (
        *(
            "Your answer was not taken: {problem}.",
            "You are the {role} of run {run}, which is in phase {phase}.",
        ),
        *("Goal: {goal}", LAST, "Give your answer once more, in the form that is asked for."),
    ),
    "repair_vote": ("no vote that can be counted", "Answer once more", VOTE),
    "respond": (
        *("Topic: {goal}", "The last positions of the others: {positions}", LAST, "in at most 300 words"),
        *("say where they are right, where they are wrong, and why", "add a line that says only AGREE"),
    ),
    "review_ack": (
        *(
            REVIEWER,
            GOAL,
            LAST,
            TEST,
            "you change no file",
            "work in this directory: {place}",
            "`ACK:` that you are ready",
        ),
        "Without `SUBSCRIBE:` you see the work when it is submitted, not before.",
    ),
    "review_plan": (
        *(REVIEWER, GOAL, LAST, "The plan of the builder: {plan}", "Say with `RISK:` how risky this is."),
        *("A high risk waits for a person.", "`ALTERNATIVE:` is for a plan that is wrong as a whole."),
    ),
    "review_watch": (
        *(REVIEWER, GOAL, LAST, "The plan: {plan}", "The step: {seen}", "say so with `ALERT:`"),
        "Otherwise answer only NOOP.",
    ),
    "review_work": (
        *(REVIEWER, GOAL, LAST, "The plan: {plan}", "cycle {cycle} of {cycles}", "in {place}: {work}"),
        *("what is resolved stays resolved: {findings}", "Decide with `DECISION:`", "as `RESOLVED:`"),
        "A revision needs a finding that is major or critical",
    ),
    "reviewer": (
        *(
            LINES,
            "ACK: a note",
            "SUBSCRIBE: steps, diffs, tests",
            "RISK: low, medium or high",
            "NOTE: text",
            "CHECK: text",
        ),
        *(
            "ALTERNATIVE: another plan in one sentence",
            "ALERT: info - text",
            "ALERT: critical - text, which halts",
        ),
        *("DECISION: accept, revise or abort", "FINDING: minor - text", "FINDING: major - text"),
        *("FINDING: critical - text, one a line", "RESOLVED: f-1, f-2", "RATIONALE: why; an abort needs one"),
        MESSAGE.format("reviewer"),
    ),
    "round_robin": (
        *(
            "Task, in the words of the person who asked for it: {goal}",
            LAST,
            "{board}",
            "Also taking part: {others}.",
        ),
        "If the task is solved, say that it is final.",
    ),
    "rules": (
        *(*COMMANDS, "[from NAME #NUMBER] what they say [end #NUMBER]", "`[end #NUMBER; here: NAME, NAME]`"),
        *(
            "posted to the room by itself",
            "Do not repeat those first and last lines.",
            "`[YOUR TURN #t-NUMBER]`",
        ),
        *(
            "@working note you need more time",
            "@handoff.NAME task pass the work on",
            "@final the work is done",
        ),
        *("@query.log 10 get the last lines of the room", "NOOP you have nothing to say"),
        *("Until then there is nothing for you to do.", "Thanks and confirmations need no command"),
    ),
    "rules_tools": (
        "tools of the server `csp`",
        *(
            "send_message",
            "broadcast",
            "read_messages",
            "list_agents",
            "working",
            "handoff",
            "vote",
            "board_add",
        ),
        *(
            "board_search",
            "query_log",
            "Do not print the same command as well",
            "still end each prompt with your answer",
        ),
        "A vote by tool needs no `VOTE:` line.",
    ),
    "single": (
        "Answer this request from the room: {goal}",
        "oldest first: {window}",
        "hand it over once",
        "Also here: {others}.",
    ),
    "start_modes": (
        *(
            "Begin the mode `{mode}`",
            "with the tool start_mode",
            "follow it with mode_status until it has ended",
        ),
        *(
            "{about}",
            "Topic: {topic}",
            "`-` for all who are online: {agents}",
            "`-` for the default: {rounds}",
        ),
        "If you have no tool start_mode, you may not begin modes: ask the human to, with send_message.",
    ),
    "summarise": (
        *(
            "the whiteboard {board}",
            "the {count} notes below",
            "The last summary: {before}",
            "oldest first: {notes}",
        ),
        *("exactly as they are written", "Invent nothing.", "the summary alone, in at most 300 words"),
    ),
    "synthesise": (
        *(
            "A {mode} has come to its end.",
            "Took part: {others}.",
            "Topic: {goal}",
            "{votes}",
            "{board}",
            LAST,
        ),
        *("The last word of each: {positions}", "what they agree on, what they do not agree on"),
    ),
    "talk": ("oldest first: {window}", "Now {sender} says to you: {text}"),
    "tools": (
        "Use these tools to talk to them.",
        "has your own name as its sender, and is sent once: do not also print it as an answer.",
        *("## send_message Say something to one participant", "Give `turn` to answer a turn"),
        *("## broadcast Say something to everybody", "## read_messages Read what was said to you."),
        *(
            "## list_agents List who is in the room",
            "## set_status Say what you are doing",
            "## working Ask for more time",
        ),
        *("## handoff Pass the work on", "## vote Vote in the ballot", "Your last vote counts, once."),
        *("## board_add Put a note on the shared whiteboard", "## board_search Search the shared whiteboard"),
        *("## query_log Look up what was said in the room", "## mode_status See the mode that runs"),
        *(
            "## start_mode Start a mode",
            "## stop Stop the mode that runs, at once.",
            "## chatter_collaborate Have several",
        ),
        "debate, consensus, collaborate, autopilot, round_robin, orchestrator, review, single.",
        *("a handle for chatter_poll", "## chatter_poll See how far a collaboration has come"),
    ),
    "words": (*ENDS, "If you need more time, answer only `@working`."),
}
#: Those that are not asked for in a turn have no heading and no form of their own.
WITHOUT_FORM: Final = {
    *("api", "board", "builder", "digest", "envelope", "last_line", "lines", "message", "orchestrator"),
    *(
        "repair_vote",
        "reviewer",
        "rules",
        "rules_tools",
        "start_modes",
        "summarise",
        "talk",
        "tools",
        "words",
    ),
}


def text_of(name: str) -> str:
    return " ".join((ROOT / "prompts" / f"{name}.md").read_text("utf-8").split())


def test_every_prompt_is_looked_at() -> None:
    assert set(WORDS) == {path.stem for path in (ROOT / "prompts").glob("*.md")}


@pytest.mark.parametrize("name", WORDS)
def test_a_prompt_says_what_an_agent_has_to_know(name: str) -> None:
    text = text_of(name)

    assert [words for words in WORDS[name] if words not in text] == []


@pytest.mark.parametrize("name", sorted(set(WORDS) - WITHOUT_FORM))
def test_a_turn_ends_with_the_form_of_its_answer(name: str) -> None:
    assert text_of(name).endswith("{format}")


@pytest.mark.parametrize("name", sorted(set(WORDS) - WITHOUT_FORM - {"repair_envelope"}))
def test_a_turn_begins_with_its_heading(name: str) -> None:
    assert text_of(name).startswith("{label} ")
