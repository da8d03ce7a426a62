"""What the profiles read off captures of the real CLIs; the answers were written by looking at them."""

import random
from dataclasses import dataclass, replace
from typing import Final

import pytest

from csp.clis.profile import load_profile
from csp.sidecar.emulator import KINDS, make_emulator
from csp.terminal.screen import Screen
from csp.terminal.screen_reader import Reading, read_screen
from tests.sidecar.recordings import recording
from tests.sidecar.screens import CLIS, capture, cases, raw_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a person sees on a screen."""

    draft: str | None = None
    """None without a composer, empty in an empty one."""
    is_prompt: bool = True
    is_busy: bool = False
    marker: bool = False
    dialog: str = ""
    question: str = ""
    subject: str = ""
    choices: tuple[str, ...] = ()
    selected: int = 0
    blocked: str = ""
    limit: str | None = None
    title_says: str | None = "idle"


IDLE: Final = Seen(draft="")
BUSY: Final = Seen(draft="", is_busy=True, title_says="busy")
LONG: Final = "first line of a draft that is long enough to wrap around in a narrow pane of forty columns"


def draft(*lines: str) -> Seen:
    return Seen(draft="\n".join(lines))


def overlay(*, is_over_composer: bool = False) -> Seen:
    return Seen(dialog="overlay", draft="" if is_over_composer else None)


CLAUDE_CHOICES: Final = ("Yes", "Yes, and always allow access to demo/ from this project", "No")


def claude_asks(command: str, note: str, place: str, selected: int = 1) -> Seen:
    return Seen(
        dialog="permission",
        question="Do you want to proceed?",
        subject=f"Bash command\n\n{command}\n{note}",
        choices=("Yes", f"Yes, and always allow access to {place}/ from this project", "No"),
        selected=selected,
    )


CLAUDE_100: Final = claude_asks(
    "echo a-long-command-line --with several words that will surely wrap in a narrow pane >\nmade.txt",
    "Run a command",
    "project",
)
CLAUDE_40: Final = claude_asks(
    "echo a-long-command-line --with\nseveral words that will surely\nwrap in a narrow pane > made.txt",
    "Run a command",
    "project",
)
CLAUDE_QUESTION: Final = Seen(
    dialog="menu",
    question="Which colour do you like?",
    subject="☐ Colour",
    choices=("Red like a rose", "Blue like the sea", "Type something.", "Chat about this"),
    selected=1,
)
CLAUDE_EDIT: Final = Seen(
    dialog="permission",
    question="Do you want to create new.txt?",
    subject="Create file\nPROJECT/new.txt\n\n1 hello\n2 world",
    choices=("Yes", "Yes, allow all edits during this session (shift+tab)", "No"),
    selected=1,
)
CLAUDE: Final = {
    "after-C-c-before-first-token": draft("old prompt C-c T_SHORT"),
    "after-Escape-before-first-token": draft("old prompt Escape T_SHORT"),
    **dict.fromkeys(("after-ctrlc", "after-ctrlc-early", "after-esc", "after-esc-early", "after-tool"), IDLE),
    **dict.fromkeys(("busy-stream", "busy-tool"), BUSY),
    **dict.fromkeys(("ctrlc-idle-empty", "draft1-cleared", "idle", "trust-after-enter"), IDLE),
    **dict.fromkeys(("perm-after-2", "perm-after-3", "perm-after-Enter", "perm-after-Escape"), IDLE),
    "draft1": draft("hello draft"),
    "login": Seen(draft="", blocked="login"),
    "onboarding": Seen(blocked="onboarding", title_says=None),
    "trust": Seen(blocked="trust", title_says=None),
    # Claude Code 2.1.326: no numbers, "No" first, notices above the composer.
    "trust-326": Seen(blocked="trust", title_says=None),
    "trust-326-yes": Seen(blocked="trust", title_says=None),
    "bypass-326": Seen(blocked="onboarding", title_says=None),
    "login-326": Seen(draft="", blocked="login", title_says=None),
    "auto-check-326": Seen(
        dialog="entered",
        question="Enter to stay in auto mode · shift+Tab to leave for accept edits mode and stop · "
        "Esc to cancel",
    ),
    "history-326": draft("tool"),
    # Claude Code 2.1.328 puts a prompt that was stopped early back as a paste, with a new number.
    "pasted-328": Seen(draft="[Pasted text #1 +16 lines]", marker=True),
    "returned-328": Seen(draft="[Pasted text #2 +16 lines]", marker=True),
    "login-326-hint": Seen(draft="", title_says=None),
    "login-326-placeholder": Seen(draft="", blocked="login"),
    "auto-nudge-326": Seen(
        dialog="menu",
        question="Make auto mode your default permission mode?",
        choices=("Yes, set auto mode as my default permission mode", "No, keep manual mode"),
        selected=1,
        title_says=None,
    ),
    "paste-long": Seen(draft="[Pasted text #1 +59 lines]", marker=True),
    "perm-after-n": claude_asks("echo side-effect > /srv/demo/made-claude.txt", "Write a file", "demo"),
    "perm-after-y": claude_asks("echo side-effect > /srv/demo/made-by-bash.txt", "Write a file", "demo"),
    "permission": claude_asks("echo side-effect > /srv/demo/made-by-bash.txt", "Write a file", "demo"),
    **dict.fromkeys(("accept-edits-100", "accept-edits-40", "plan-mode-100", "plan-mode-40"), IDLE),
    **dict.fromkeys(("at-100", "at-40"), draft("see @")),
    **dict.fromkeys(("bash-100", "bash-40"), Seen(draft="", is_prompt=False)),
    **dict.fromkeys(("busy-draft-100", "busy-draft-40"), replace(BUSY, draft="draft while busy")),
    **dict.fromkeys(("config-100", "config-40", "rewind-100", "rewind-40"), overlay()),
    **dict.fromkeys(("transcript-100", "transcript-40", "search-100", "search-40"), overlay()),
    **dict.fromkeys(("help-100", "help-40"), overlay(is_over_composer=True)),
    **dict.fromkeys(("draft-home-100", "draft-home-40"), draft("one two")),
    "draft-lines-100": draft(LONG, "", "third line"),
    "draft-lines-40": draft(
        "first line of a draft that is long",
        "enough to wrap around in a narrow",
        "pane of forty columns",
        "",
        "third line",
    ),
    **dict.fromkeys(("edit-100", "edit-40"), CLAUDE_EDIT),
    **dict.fromkeys(
        ("emoji-100", "emoji-40", "imitation-100", "imitation-40", "limit-100", "limit-40"), IDLE
    ),
    "model-picker-100": Seen(
        dialog="menu",
        question="Select model Switch between Claude models. Your pick becomes the default for new sessions."
        " For other/previous model names, specify with --model.",
        choices=(
            "Default (recommended) ✔  Use the default model (currently Opus 4.8 (1M context)) · $5/$25",
            "Opus                     Opus 4.8 with 1M context · Best for everyday, complex tasks ·",
            "Sonnet                   Sonnet 5 · Efficient for routine tasks · $3/$15 per Mtok",
            "Sonnet 5 (1M context)    Sonnet 5 for long sessions · $3/$15 per Mtok",
            "Haiku                    Haiku 4.5 · Fastest for quick answers · $1/$5 per Mtok",
        ),
        selected=1,
    ),
    "model-picker-40": overlay(),
    "permission-100": CLAUDE_100,
    "permission-40": CLAUDE_40,
    # At this width Claude leaves no blank between a number and a label that wraps.
    "permission-61": claude_asks("echo 'hallo wörld' > x.txt && ls -la | head", "Run a command", "project"),
    "permission-second-100": replace(CLAUDE_100, selected=2),
    "permission-second-40": replace(CLAUDE_40, selected=2),
    **dict.fromkeys(("question-100", "question-40"), CLAUDE_QUESTION),
    **dict.fromkeys(("slash-100", "slash-40"), draft("/")),
}


def codex_asks(reason: str, command: str, again: str, selected: int = 1) -> Seen:
    return Seen(
        dialog="permission",
        question="Would you like to run the following command?",
        subject=f"Environment: local\n\nReason: {reason}\n\n$ {command}",
        choices=(
            "Yes, proceed (y)",
            f"Yes, and don't ask again for commands that start with `{again}` (p)",
            "No, and tell Codex what to do differently (esc)",
        ),
        selected=selected,
        title_says="dialog",
    )


CODEX_MODELS: Final = tuple(
    f"{name:<15}{what}".rstrip()
    for name, what in (
        ("GPT-6.1-Sol", "Latest workhorse model for coding and everyday work."),
        ("GPT-6-Astra", "Frontier intelligence for the most demanding work."),
        ("GPT-6-Sol", "Previous generation workhorse model."),
        ("GPT-6-Luna", "Fast and affordable model for easier tasks."),
        ("GPT-5.6-Sol", "Older generation workhorse model."),
        ("GPT-6.1 Terra", "GPT-6.1 Terra Codex model."),
        ("GPT-5.6-Terra", "Older balanced model for straightforward work."),
        ("GPT-5.6-Luna", "Older fast and efficient model."),
    )
)
CODEX_PICKER: Final = Seen(
    dialog="menu", question="Select Model and Effort", choices=CODEX_MODELS, selected=1
)
CODEX_LONG: Final = (
    "echo a-long-command-line --with several words that will surely wrap in a narrow pane > made.txt"
)
CODEX_SAID: Final = "The test asks for it"
CODEX_100: Final = codex_asks(CODEX_SAID, CODEX_LONG.replace("> made", ">\nmade"), CODEX_LONG)
CODEX_80: Final = codex_asks(CODEX_SAID, CODEX_LONG.replace(" narrow", "\nnarrow"), CODEX_LONG)
CODEX_40_WHOLE: Final = codex_asks(
    CODEX_SAID,
    "echo a-long-command-line --with\nseveral words that will surely wrap\nin a narrow pane > made.txt",
    CODEX_LONG,
)
# The pane has no row for the end of the last choice.
CODEX_40: Final = replace(
    CODEX_40_WHOLE, choices=(*CODEX_40_WHOLE.choices[:2], "No, and tell Codex what to do")
)
CODEX_LIMIT: Final = {size: f"12:{minute} PM" for size, minute in ((100, 23), (40, 28), (80, 30))}
CODEX: Final = {
    **dict.fromkeys(("after-C-c-before-first-token", "after-Escape-before-first-token"), IDLE),
    **dict.fromkeys(("after-ctrlc", "after-ctrlc-early", "after-esc", "after-esc-early", "after-tool"), IDLE),
    # Only the title tells that an answer is streaming.
    "busy-stream": replace(IDLE, title_says="busy"),
    "busy-tool": BUSY,
    "ctrlc-idle-empty": Seen(title_says=None),
    **dict.fromkeys(
        ("draft1-cleared", "hooks-trusted-by-flag2", "idle", "idle-altscreen", "starting-169"), IDLE
    ),
    "start-untrusted-no-dialog": IDLE,
    "draft1": draft("hello draft"),
    "accepted-169": draft("hello there"),
    "hooks-review": Seen(blocked="hooks"),
    "hooks-review-after2": Seen(blocked="hooks"),
    "login": Seen(blocked="login"),
    "paste-long": Seen(draft="[Pasted Content 2749 chars]", marker=True),
    **dict.fromkeys((f"perm-after-{key}" for key in ("1", "2", "3", "Enter", "Escape", "n", "y")), IDLE),
    **dict.fromkeys(
        ("permission", "permission-fresh"),
        codex_asks(
            "the stub wants to write a file",
            "echo side-effect > /srv/demo/made-codex.txt",
            "echo side-effect > /srv/demo/made-codex.txt",
        ),
    ),
    **{f"at-{size}": draft("see @") for size in (100, 80, 40)},
    **{f"bash-{size}": Seen(draft="", is_prompt=False) for size in (100, 80, 40)},
    **{f"busy-{size}": replace(IDLE, title_says="busy") for size in (100, 80, 40)},
    **{f"busy-draft-{size}": Seen(draft="draft while busy", title_says="busy") for size in (100, 80, 40)},
    **{f"busy-working-{size}": BUSY for size in (100, 80, 40)},
    **{f"slash-{size}": draft("/") for size in (100, 80, 40)},
    **{f"help-{size}": overlay(is_over_composer=True) for size in (100, 80, 40)},
    **{f"emoji-{size}": IDLE for size in (100, 80, 40)},
    **{f"imitation-{size}": IDLE for size in (100, 80, 40)},
    **{f"limit-{size}": replace(IDLE, limit=until) for size, until in CODEX_LIMIT.items()},
    **{f"draft-home-{size}": Seen(draft="one two", limit=until) for size, until in CODEX_LIMIT.items()},
    "draft-lines-100": draft(LONG, "", "third line"),
    "draft-lines-80": draft(LONG.replace(" forty", "\nforty"), "", "third line"),
    "draft-lines-40": draft(
        "first line of a draft that is long",
        "enough to wrap around in a narrow",
        "pane of forty columns",
        "",
        "third line",
    ),
    "model-picker-100": CODEX_PICKER,
    "model-picker-80": CODEX_PICKER,
    "model-picker-40": replace(CODEX_PICKER, choices=tuple(name[:15].rstrip() for name in CODEX_MODELS)),
    "permission-100": CODEX_100,
    "permission-80": CODEX_80,
    "permission-40": CODEX_40,
    "permission-second-100": replace(CODEX_100, selected=2),
    "permission-second-80": replace(CODEX_80, selected=2),
    "permission-second-40": replace(CODEX_40, selected=2),
    **dict.fromkeys(("rewind-100", "rewind-40", "transcript-100", "transcript-40"), overlay()),
}


def gemini_asks(title: str, command: str, selected: int = 1) -> Seen:
    return Seen(
        dialog="permission",
        question="Allow execution of [Shell]?",
        subject=f"? {title}\n\n{command}\n\nRedirection detected. To auto-accept, press Shift+Tab",
        choices=("Allow once", "Allow for this session", "No, suggest changes (esc)"),
        selected=selected,
        title_says="dialog",
    )


GEMINI_100: Final = gemini_asks(
    "Shell echo a-long-command-line --with several words that will surely wrap in a narrow pane >…",
    CODEX_LONG.replace("> made", ">\nmade"),
)
GEMINI_40: Final = gemini_asks(
    "Shellecho a-long-command-line --…",
    "echo a-long-command-line\n--with several words that will\nsurely wrap in a narrow pane >\nmade.txt",
)
GEMINI_LIMIT: Final = Seen(
    dialog="menu",
    question="Usage limit reached for gemini-3.8-flash. /stats model for usage details"
    " /model to switch models.",
    choices=("Keep trying", "Stop"),
    selected=1,
    limit="",
    title_says="busy",
)
GEMINI_PICKER: Final = Seen(
    dialog="menu",
    question="Select Model",
    choices=(
        "Auto Let Gemini CLI decide the best model for the task: gemini-3.1-pro-preview, gemini-3.8-flash",
        "Manual Manually select a model",
    ),
    selected=1,
)


def of_demo(file: str) -> Seen:
    command = f"echo side-effect > /srv/demo/{file}"
    return gemini_asks(f"Shell  {command}", command)


GEMINI: Final = {
    **dict.fromkeys(("after-C-c-before-first-token", "after-Escape-before-first-token"), IDLE),
    **dict.fromkeys(("after-ctrlc", "after-ctrlc-early", "after-esc", "after-esc-early", "after-tool"), IDLE),
    **dict.fromkeys(("busy-stream", "busy-tool", "busy-40"), BUSY),
    **dict.fromkeys(("ctrlc-idle-empty", "draft1-cleared", "idle", "skip-trust", "untrusted-env"), IDLE),
    **dict.fromkeys(("perm-after-2", "perm-after-3", "perm-after-Enter", "perm-after-Escape"), IDLE),
    "draft1": draft("hello draft"),
    "login": Seen(blocked="login"),
    "trust": Seen(blocked="trust"),
    "paste-long": Seen(draft="[Pasted Text: 60 lines]", marker=True),
    "perm-after-4": of_demo("made-by-bash.txt"),
    "perm-after-y": of_demo("made-gemini.txt"),
    "permission": of_demo("made-by-bash.txt"),
    **dict.fromkeys(("accept-edits-100", "accept-edits-40", "plan-mode-100", "plan-mode-40"), IDLE),
    **dict.fromkeys(("at-100", "at-40"), draft("see @")),
    **dict.fromkeys(("slash-100", "slash-40"), draft("/")),
    **dict.fromkeys(("help-100", "help-40"), overlay(is_over_composer=True)),
    **dict.fromkeys(("denied-40", "emoji-40", "imitation-40"), IDLE),
    "bash-100": Seen(draft="", is_prompt=False),
    "bash-40": Seen(draft="", is_prompt=False),
    "busy-draft-40": replace(BUSY, draft="draft while busy"),
    "draft-lines-100": draft(LONG, "", "third line"),
    "draft-lines-40": draft(
        "first line of a draft that is",
        "long enough to wrap around in a",
        "narrow pane of forty columns",
        "",
        "third line",
    ),
    "limit-100": GEMINI_LIMIT,
    "limit-40": GEMINI_LIMIT,
    # A dialog under a title that says Ready.
    "loop-100": Seen(
        dialog="menu",
        question="This can happen due to repetitive tool calls or other model behavior."
        " Do you want to keep loop detection enabled or disable it for this session?",
        subject="?  A potential loop was detected",
        choices=("Keep loop detection enabled (esc)", "Disable loop detection for this session"),
        selected=1,
    ),
    "model-picker-100": GEMINI_PICKER,
    "model-picker-40": GEMINI_PICKER,
    "permission-100": GEMINI_100,
    "permission-40": GEMINI_40,
    "permission-second-100": replace(GEMINI_100, selected=2),
    "permission-second-40": replace(GEMINI_40, selected=2),
    "settings-100": overlay(),
    "settings-40": Seen(),  # its hint is broken in the middle; without a composer nothing is typed
}
EXPECTED: Final = {"claude": CLAUDE, "codex": CODEX, "gemini": GEMINI}


def seen(reading: Reading, title_says: str | None) -> Seen:
    composer, dialog = reading.composer, reading.dialog
    return Seen(
        draft=composer.text if composer else None,
        is_prompt=not composer or composer.is_empty or bool(composer.text),
        is_busy=reading.is_busy,
        marker=bool(composer and composer.is_pasted),
        dialog=dialog.kind if dialog else "",
        question=dialog.question if dialog and dialog.kind != "overlay" else "",
        subject=dialog.subject if dialog else "",
        choices=tuple(choice.label for choice in dialog.choices) if dialog else (),
        selected=next((choice.number for choice in dialog.choices if choice.is_selected), 0) if dialog else 0,
        blocked=reading.blocked.kind if reading.blocked else "",
        limit=reading.limit.until_text if reading.limit else None,
        title_says=title_says,
    )


@pytest.mark.parametrize("cli", CLIS)
def test_every_capture_has_an_answer(cli: str) -> None:
    assert set(EXPECTED[cli]) == cases(cli)


@pytest.mark.parametrize(("cli", "case"), [(cli, case) for cli in CLIS for case in EXPECTED[cli]])
def test_a_capture_is_read_as_a_person_would(cli: str, case: str) -> None:
    profile = load_profile(cli)
    screen = capture(cli, case)

    reading = read_screen(screen, profile.rules)

    assert seen(reading, profile.state_of(0, screen.title)) == EXPECTED[cli][case]


@pytest.mark.parametrize(("cli", "case"), [(cli, case) for cli in CLIS for case in EXPECTED[cli]])
def test_generic_never_takes_a_dialog_or_draft_for_an_empty_composer(cli: str, case: str) -> None:
    expected = EXPECTED[cli][case]
    reading = read_screen(capture(cli, case), load_profile("generic").rules)

    is_held = reading.dialog is not None or reading.composer is None or not reading.composer.is_empty

    assert is_held or (expected.draft == "" and expected.is_prompt)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cli", CLIS)
def test_a_terminal_of_256_colours_is_read_the_same(cli: str, kind: str) -> None:
    """Gemini draws no borders there, only a background."""
    question = {"claude": CLAUDE_100, "codex": CODEX_100, "gemini": GEMINI_100}[cli].question
    rules = load_profile(cli).rules
    found = {}
    for case in ("idle", "draft", "imitation", "permission"):
        emulator = make_emulator(24, 80, prefer=kind)
        emulator.feed(raw_bytes(cli, f"{case}-256-colours"))
        reading = read_screen(emulator.screen(), rules)
        composer, dialog = reading.composer, reading.dialog
        found[case] = composer.text if composer else None, dialog.question if dialog else None

    assert found == {
        "idle": ("", None),
        "draft": ("first line\n\nthird line", None),
        "imitation": ("", None),
        "permission": (None, question),
    }


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "generic", "shell"])
def test_rows_in_any_order_are_read_without_harm(name: str) -> None:
    """A screen caught in the middle of its drawing, or a size that no one tried."""
    rules = load_profile(name).rules
    chance = random.Random(name)
    rows = [row for cli in CLIS for case in sorted(EXPECTED[cli]) for row in capture(cli, case).rows]

    for _ in range(1500):
        count = chance.randint(1, 30)
        screen = Screen(
            rows=tuple(chance.choices(rows, k=count)),
            cols=chance.choice((1, 20, 40, 120)),
            cursor_row=chance.randint(0, count),
            cursor_col=chance.randint(0, 120),
            cursor_visible=chance.random() < 0.5,
        )

        reading = read_screen(screen, rules)

        assert not (reading.composer and reading.dialog and reading.dialog.choices)
        assert not (reading.composer and reading.composer.is_empty and reading.composer.text)


def test_the_flow_of_a_turn_that_asks() -> None:
    """Read after every piece as it came: no moment of the dialog looks like an empty composer."""
    for name in ("claude-permission", "codex-permission", "gemini-permission"):
        taken = recording(name)
        profile = load_profile(name.partition("-")[0])
        emulator = make_emulator(taken.rows, taken.cols)
        seen_at: list[str] = []
        for start, end in taken.pieces:
            emulator.feed(taken.data[start:end])
            reading = read_screen(emulator.screen(), profile.rules)
            kind = reading.dialog.kind if reading.dialog else ""
            if kind == "permission" or (seen_at and start < taken.permission_bytes):
                seen_at.append(kind)

        assert len(seen_at) > 0
        assert set(seen_at) == {"permission"}


@pytest.mark.parametrize(
    ("case", "choices", "selected"),
    [
        ("trust", ("Yes, I trust this folder", "No, exit"), 1),
        ("trust-326", ("No, exit", "Yes, I trust this folder"), 1),
        ("trust-326-yes", ("No, exit", "Yes, I trust this folder"), 2),
        ("bypass-326", ("No, exit", "Yes, I accept"), 1),
    ],
)
def test_a_start_screen_can_be_answered(case: str, choices: tuple[str, ...], selected: int) -> None:
    blocking = read_screen(capture("claude", case), load_profile("claude").rules).blocking

    assert blocking is not None
    assert tuple(choice.label for choice in blocking.choices) == choices
    assert blocking.selected == selected
    assert blocking.is_numbered == (case == "trust")


@pytest.mark.parametrize(
    ("cli", "case", "is_starting"),
    [
        ("claude", "login-326-hint", True),
        ("claude", "login-326", False),
        ("claude", "idle", False),
        ("codex", "starting-169", True),
        ("codex", "idle", False),
    ],
)
def test_a_cli_that_has_not_started_yet_is_seen(cli: str, case: str, is_starting: bool) -> None:
    assert read_screen(capture(cli, case), load_profile(cli).rules).is_starting == is_starting


@pytest.mark.parametrize(("case", "is_accepted"), [("accepted-169", True), ("draft1", False)])
def test_a_text_that_codex_submits_once_it_has_started_is_seen(case: str, is_accepted: bool) -> None:
    reading = read_screen(capture("codex", case), load_profile("codex").rules)

    assert reading.composer is not None and not reading.composer.is_empty
    assert reading.is_accepted == is_accepted
