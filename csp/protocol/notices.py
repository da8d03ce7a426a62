"""The notices of a room: codes with parameters, which are rendered as text only here.

The event of a notice contains its code, its parameters and its text. People read the text, which may be
reworded at any time; programs use the code. Events in older journals have only the text.
"""

from enum import StrEnum
from typing import Final, NamedTuple

from csp.protocol.enums import Struct

NoticeParam = str | int | float


class NoticeWords(NamedTuple):
    """A notice: its code and parameters, for example `NoticeCode.YOUR_TURN(agent="ada")`."""

    code: "NoticeCode"
    params: dict[str, NoticeParam]

    @property
    def text(self) -> str:
        """The rendered text for people."""
        return self.code.template.format_map(self.params)


class NoticeCode(StrEnum):
    """The subject of a notice: its code on the wire, then its text with parameters in braces."""

    template: str

    def __new__(cls, code: str, template: str) -> "NoticeCode":
        member = str.__new__(cls, code)
        member._value_ = code
        member.template = template
        return member

    def __call__(self, **params: NoticeParam) -> "NoticeWords":
        """Return a notice with this code."""
        return NoticeWords(self, params)

    # fmt: off
    # The course of a session.
    MODE = "mode", "Mode: {mode}"
    TOPIC = "topic", "Topic: {topic}"
    ROUND = "round", "Round {round}"
    SESSION_PAUSED = "session_paused", "{mode} paused."
    SESSION_RESUMED = "session_resumed", "{mode} resumed."
    SESSION_CONTINUED = "session_continued", "{mode} continues for at most {steps} steps."
    SESSION_EXTENDED = "session_extended", "Extended by {amounts}."
    TURNS_EXTENDED = "turns_extended", "The open turns got more time."
    SESSION_SUMMARY = ("session_summary",
        "Summary of {session} ({mode}): {reason} after {replies} replies, {about}{tokens:,} new tokens "
        "({output:,} output), {cached:,} cached, {seconds:.0f} s.{details}")
    COLLABORATION_ENDED = "collaboration_ended", "Collaboration {session}: {closing}"
    COLLABORATION_RESULT = "collaboration_result", "Collaboration {session}: {closing}\n{outcome}"
    NO_SYNTHESIS = "no_synthesis", "No synthesis was written: {instead}."
    PARALLEL_IGNORED = "parallel_ignored", "{agent} names one speaker at a time, so `parallel` is ignored."
    PRICE_UNKNOWN = ("price_unknown",
        "No price for {agents}; its cost counts after the first reported call.")
    PRICE_UNKNOWN_CAPPED = ("price_unknown_capped",
        "No price for {agents}; its cost counts after the first reported call. The limit of "
        "{tokens:,} new tokens applies.")
    LIMIT_NEAR = "limit_near", "{used} of {most} {unit} are used: the session stops at its limit."
    LIMIT_REACHED = "limit_reached", "Emergency cap: the session has reached its limit of {most} {unit}."
    LIMIT_NEAR_ASKS = ("limit_near_asks",
        "{used} of {most} {unit} are used: the session pauses and asks you at its limit.")
    LIMIT_ASKS = ("limit_asks",
        "The session has reached its limit of {most} {unit} and is paused. Decide with: "
        "csp decide {session} continue, or: csp decide {session} end")
    LIMIT_RAISED = "limit_raised", "The session continues with {amount} more."
    SLEPT = "slept", "This machine slept for {duration}; no clock of the session counts that time."
    COST_LIMIT = "cost_limit", "Cost limit: {why}, so the call is not made."
    AUTOPILOT_RUNNING = "autopilot_running", "Autopilot running. Say 'Allstop' to end."
    AUTOPILOT_ROUNDS_IGNORED = ("autopilot_rounds_ignored",
        "Autopilot ignores --rounds. Say 'Allstop' to end.")
    ALLSTOP_IDLE = "allstop_idle", "Allstop: no session is running in thread {thread}."

    # Its end, one notice for each reason: `ended_` with the reason.
    ENDED_STOPPED_BY_USER = "ended_stopped_by_user", "Collaboration stopped by user (Allstop)."
    ENDED_CANCELED = "ended_canceled", "Collaboration canceled by user."
    ENDED_DONE = "ended_done", "{mode} complete."
    ENDED_FINAL = "ended_final", "{mode} complete."
    ENDED_NO_HANDOFF = "ended_no_handoff", "{mode} ended: no next speaker was named."
    ENDED_MALFORMED = ("ended_malformed",
        "{mode} ended: the last reply was malformed, so it named no next speaker.")
    ENDED_CAP_REACHED = "ended_cap_reached", "{mode} ended: cap reached."
    ENDED_EMERGENCY_TURNS = "ended_emergency_turns", "{mode} stopped: emergency cap of turns."
    ENDED_EMERGENCY_TOKENS = "ended_emergency_tokens", "{mode} stopped: emergency cap of tokens."
    ENDED_EMERGENCY_MINUTES = "ended_emergency_minutes", "{mode} stopped: emergency cap of minutes."
    ENDED_EMERGENCY_COST = "ended_emergency_cost", "{mode} stopped: emergency cap of cost."
    ENDED_TOO_FEW = "ended_too_few", "{mode} ended: too few participants are left."
    ENDED_ALL_FAILED = "ended_all_failed", "{mode} ended: no agent could take a turn."
    ENDED_TIE = "ended_tie", "{mode} ended: the vote is tied."
    ENDED_NO_QUORUM = "ended_no_quorum", "{mode} ended: too few agents have voted."
    ENDED_ACCEPTED = "ended_accepted", "{mode} complete: the work is accepted."
    ENDED_ABORTED = "ended_aborted", "{mode} ended: it was aborted."
    ENDED_HALTED = "ended_halted", "{mode} ended: it was halted."
    ENDED_AGENT_LIMITED = "ended_agent_limited", "{mode} stopped: an agent has reached a usage limit."
    ENDED_SUPERSEDED = "ended_superseded", "{mode} stopped: replaced by another session."

    # Turns and replies.
    YOUR_TURN = "your_turn", "@{agent} - Your turn."
    PASSED_OVER = "passed_over", "{agent} was skipped: {reason}."
    SKIPPED = "skipped", "{agent} was skipped."
    KICKED = "kicked", "{agent} no longer takes part."
    BENCHED = "benched", "{agent} is benched: it gets no turns until it posts something."
    TURN_FAILED = "turn_failed", "{agent}: its turn failed, {reason}. The turn passes on."
    TURN_TIMED_OUT = "turn_timed_out", "{agent}: timed out, {reason}. The turn passes on."
    TURN_LATE = "turn_late", "{agent} has been at its turn for {seconds:g} s."
    TURN_OBSTRUCTED = "turn_obstructed", "Cannot deliver {agent}'s turn: {why}."
    NEEDS_PERSON = "needs_person", "{agent} waits for a person."
    NEEDS_PERSON_FOR = "needs_person_for", "{agent} waits for a person: {detail}"
    AGENT_LIMITED = "agent_limited", "{agent} has reached a usage limit."
    WAITS_LIMITED = "waits_limited", "{agent} has reached a usage limit. The session waits for it."
    WAITS_FOR_RESET = ("waits_for_reset",
        "{agent} has reached a usage limit that resets in {duration}. The session waits, then asks it again.")
    WAITS_UNKNOWN = ("waits_unknown",
        "{agent} has reached a usage limit, and nobody knows when it resets. The session waits until {agent} "
        "recovers, or until you decide with: csp decide {session} continue, skip or end")
    WAITS_OFFLINE = "waits_offline", "{agent} is offline. The session waits, then asks it again."
    WAIT_OVER = "wait_over", "{agent} is asked again after a wait of {duration}."
    REPLY_BROKE_OFF = "reply_broke_off", "{agent}: its answer was {ending}: {reason}"
    REPLY_MALFORMED = "reply_malformed", "{agent}'s reply was malformed, so it counts as plain text."
    HANDOFF_UNKNOWN = "handoff_unknown", "{agent} named {to!r}, who is not a member. Members: {members}."
    SAID_THE_SAME = "said_the_same", "{agent} repeated itself."
    SUGGESTS_FINISH = ("suggests_finish",
        "Agent suggests finish: press ALLSTOP to end or let them continue. ({agent})")

    # Votes.
    VOTES_COUNTED = "votes_counted", "Votes: {counts}.{details}"
    BALLOT_TIED = "ballot_tied", "Tied: {labels}. A second ballot among them follows."
    VOTE_TIED = "vote_tied", "The vote is tied: a person or the orchestrator decides."
    TIE_DECIDED = "tie_decided", "The tie is decided: {label} ({agent})."

    # Review runs.
    RUN_STARTED = "run_started", "Run {run}: {builder} builds, {reviewer} reviews."
    RUN_ENDED = "run_ended", "Run {run} has ended: {reason}. Its worktree stays at {place}."
    RUN_NOTE = "run_note", "Run {run}: {note}."
    RUN_BRANCH = "run_branch", "Run {run}: the accepted work is on branch {branch}."
    RUN_PLAN_CHANGED = "run_plan_changed", "Run {run}: {agent} changed the plan."
    RUN_MINOR_ONLY = ("run_minor_only",
        "Run {run}: all findings are minor, so the decision counts as an accept with notes.")
    RUN_ALERT = "run_alert", "Run {run}: {agent} notes: {text}"
    RUN_ABORTED = "run_aborted", "Run {run}: {agent} aborts: {reason}"
    RUN_NEEDS_PERSON = "run_needs_person", "{run} needs you: {why}. Answer with: {answer}"
    RUN_WAITS_FOR_PERSON = ("run_waits_for_person",
        "{run} has waited for you for {minutes:.0f} minutes. Answer with: {answer}")
    RUN_WAITS_FOR_FILE = ("run_waits_for_file",
        "Run {run} has waited for a file from the {role} for {minutes:.0f} minutes. Put it into "
        "mailbox/{role}/. To give up: csp review abort {run} WHY")
    MAILBOX_SKIPPED = "mailbox_skipped", "Mailbox: {file} from the {role} was accepted before and is skipped."
    MAILBOX_REFUSED = "mailbox_refused", "Mailbox: {file} from the {role} was refused: {why}."

    # Messages, and the commands that agents write.
    DELIVERY_FAILED = "delivery_failed", "{message} to {agent} failed: {reason}"
    DELIVERY_EXPIRED = "delivery_expired", "{message} to {agent} expired: it was not accepted in time"
    # `control` names the control; `message` is the event that sent it.
    CONTROL_EXPIRED = "control_expired", "{control} to {agent} expired: it was not accepted in time"
    LOOP_HELD = ("loop_held",
        "{message} from {sender} to {target} is held: 8 agent replies in a row (loop guard). "
        "Release it with: csp continue {message}")
    NOT_SENT_AGAIN = "not_sent_again", "{agent}: {what} is a duplicate of {message}, not sent"
    COMMAND_REFUSED = "command_refused", "{agent}: {command} was not run: {problem} ({hint})"
    COMMAND_MISSPELT = "command_misspelt", "{agent}: {line!r} was not understood; {hint}"
    TOO_MANY_COMMANDS = ("too_many_commands",
        "{agent}: {count} commands were not run: a text may contain {most}")

    # Participants; the first four are the kinds of `NoticeKind`.
    UNTESTED_VERSION = ("untested_version",
        "{agent} runs {detail}; messages are still verified, but some states may not be recognised")
    DISK_FULL = ("disk_full",
        "{agent}: no space is left in {detail}; the agent keeps running, but events from its hooks are "
        "lost until space is freed")
    FILE_ATTACHED = ("file_attached",
        "ATTENTION: {agent} was given a file that no message requested: {detail}. It is paused, so nothing "
        "more is typed into its pane. Look at the pane, then release it with: csp resume {agent}")
    PAST_THE_ROOM = ("past_the_room",
        "{agent} tried to write to {detail} past the room; only messages sent through the room are delivered")
    APPROVED_BY_RULE = ("approved_by_rule",
        "{agent}: approved by {rule}: {command}. To stop this: {remedy}")
    AGENT_LEFT = "agent_left", "{agent} left: {detail}"
    ORCHESTRATOR_SILENT = ("orchestrator_silent",
        "Orchestrator {agent} has not answered {count} wake-ups.{state} Sessions continue without it.")

    # The whiteboard and the journal.
    BOARD_FULL = ("board_full",
        "The whiteboard of {board} is full, so replies are no longer added; have it summarised with csp "
        "board summarise, or raise CSP_BOARD_MAX_KB.")
    BOARD_LOCAL = "board_local", "The whiteboard of {board} is searched locally from now on: {problem}."
    SUMMARY_FAILED = ("summary_failed",
        "{agent}'s summary of {board} failed: {why}. The whiteboard is unchanged.")
    JOURNAL_DAMAGED = ("journal_damaged",
        "The journal is damaged in {count} places (line {lines}). See: csp doctor --journal")
    JOURNAL_REPAIRED = "journal_repaired", "The journal was repaired: {warning}."
    # fmt: on


_N = NoticeCode

#: Notices that divide a session's messages into parts; interfaces show them as headings.
HEADINGS: Final = frozenset(
    {_N.MODE, _N.ROUND, _N.SESSION_PAUSED, _N.SESSION_RESUMED, _N.SESSION_CONTINUED}
    | {code for code in _N if code.startswith("ended_")} - {_N.ENDED_STOPPED_BY_USER, _N.ENDED_CANCELED}
)
#: Notices that repeat the delivery state of their `message`, which its sender can follow anyway.
OF_DELIVERIES: Final = frozenset({_N.DELIVERY_FAILED, _N.DELIVERY_EXPIRED, _N.CONTROL_EXPIRED})


class NoticeEntry(Struct, frozen=True):
    """A notice in the catalogue for interfaces."""

    id: str
    text: str
    is_heading: bool = False


def notice_entries() -> tuple[NoticeEntry, ...]:
    """Return the catalogue entries of all notices."""
    return tuple(NoticeEntry(id=one, text=one.template, is_heading=one in HEADINGS) for one in NoticeCode)
