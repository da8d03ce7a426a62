"""Every word that a profile knows of its CLI: a screen that says it is blocked, busy, limited or covered.

test_screens.py reads whole captures; these are the words that stand in none of them, or beside others.
"""

import re
from typing import Final

import pytest

from csp.clis.profile import load_profile
from csp.terminal.screen import ScreenRules, SignPlace

RULES: Final = {
    name: load_profile(name).rules for name in ("claude", "codex", "gemini", "generic", "shell", "demo")
}


def kinds(rules: ScreenRules, table: str, place: str, text: str) -> list[str]:
    if table == "dialogs":
        return [dialog.kind for dialog in rules.dialog.kinds if dialog.pattern.search(text)]
    signs = getattr(rules, table)
    return [sign.kind for sign in signs if sign.place is SignPlace(place) and sign.pattern.search(text)]


def is_found(pattern: re.Pattern[str] | None, text: str) -> bool:
    return pattern is not None and pattern.search(text) is not None


@pytest.mark.parametrize(
    ("name", "place", "kind", "text"),
    [
        ("claude", "dialog", "trust", "Quick safety check: is this yours?"),
        ("claude", "dialog", "trust", "Do you trust the files in here?"),
        ("claude", "dialog", "trust", "1. Yes, I trust this folder"),
        ("claude", "dialog", "login", "Select login method:"),
        ("claude", "dialog", "login", "Log in with your account"),
        ("claude", "dialog", "login", "Anthropic Console account · API usage billing"),
        ("claude", "dialog", "onboarding", "Choose the text style that looks best"),
        ("claude", "dialog", "onboarding", "Let's get started."),
        ("claude", "dialog", "onboarding", "Detected a custom API key in your environment"),
        ("claude", "dialog", "onboarding", "Do you want to use this API key?"),
        ("claude", "dialog", "onboarding", "WARNING: running in Bypass Permissions mode"),
        ("claude", "dialog", "update", "Update available!"),
        ("claude", "dialog", "update", "Update now"),
        ("claude", "dialog", "update", "There is a new version"),
        ("claude", "below", "login", "Not logged in · Run /login"),
        ("claude", "below", "login", "Please run /login"),
        ("claude", "bare", "login", "Paste code here if prompted >"),
        ("claude", "bare", "login", "Browser didn't open? Use the url below"),
        ("claude", "bare", "login", "OAuth error. Press Enter to retry."),
        ("claude", "bare", "onboarding", " Welcome to Claude Code"),
        ("claude", "bare", "onboarding", "Unable to connect to Anthropic services"),
        ("claude", "bare", "onboarding", "Security notes:"),
        ("claude", "bare", "onboarding", "Press Enter to continue…"),
        ("codex", "dialog", "hooks", "Hooks need review"),
        ("codex", "dialog", "login", "Sign in with ChatGPT"),
        ("codex", "dialog", "login", "Choose how you want to use Codex"),
        ("codex", "dialog", "login", "Provide your own API key"),
        ("codex", "dialog", "trust", "Do you trust the contents?"),
        ("codex", "dialog", "trust", "Allow Codex to work in this folder"),
        ("codex", "dialog", "trust", "Trust this directory"),
        ("codex", "dialog", "trust", "Yes, trust this folder"),
        ("codex", "dialog", "update", "Update available! 0.1 -> 0.2"),
        ("codex", "dialog", "update", "1. Update now"),
        ("codex", "bare", "login", "Finish signing in via your browser"),
        ("codex", "bare", "login", "Sign in with ChatGPT to use it"),
        ("codex", "bare", "login", "Paste or type your API key"),
        ("gemini", "dialog", "trust", "Do you trust the files in this folder?"),
        ("gemini", "dialog", "login", "How would you like to authenticate for this project?"),
        ("gemini", "dialog", "login", "1. Sign in with Google"),
        ("gemini", "dialog", "onboarding", "Select Theme"),
        ("gemini", "dialog", "onboarding", "Select a theme"),
        ("gemini", "dialog", "onboarding", "Do you want to connect VS Code IDE to it?"),
        ("gemini", "bare", "login", "Waiting for auth..."),
        ("gemini", "bare", "login", "Enter Gemini API Key"),
        ("gemini", "bare", "login", "Enter API key"),
        ("gemini", "bare", "login", "Enter the authorization code:"),
    ],
)
def test_what_a_person_has_to_do_first(name: str, place: str, kind: str, text: str) -> None:
    assert kinds(RULES[name], "blocked", place, text) == [kind]
    assert kinds(RULES[name], "blocked", place, "Fine, all is done.") == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("claude", "Do you want to make this edit?"),
        ("claude", "Would you like to proceed?"),
        ("claude", "Allow the server to read it?"),
        ("claude", "Grant it the permission?"),
        ("codex", "Would you like to run the following command?"),
        ("codex", "Would you like to make the following edits?"),
        ("codex", "Would you like to grant it these permissions?"),
        ("codex", "Would you like to allow it?"),
        ("codex", "Do you want to approve network access?"),
        ("codex", "It needs your approval"),
        ("codex", " Allow the csp server to run a tool?"),
        ("codex", "3. No, and tell Codex what to do differently"),
        ("gemini", "Allow execution of: 'ls'?"),
        ("gemini", "Apply this change?"),
        ("gemini", "Do you want to proceed?"),
        ("gemini", "1. Allow once"),
        ("gemini", "2. Allow for this session"),
        *(
            ("generic", text)
            for text in (
                *("Allow it", "Approve?", "it needs permission", "Proceed?", "do you want it"),
                "would you like it",
            )
        ),
    ],
)
def test_what_asks_for_a_permission(name: str, text: str) -> None:
    assert kinds(RULES[name], "dialogs", "dialog", text) == ["permission"]
    assert kinds(RULES[name], "dialogs", "dialog", "Which colour?") == []


@pytest.mark.parametrize(
    ("name", "place", "is_styled", "text"),
    [
        ("claude", "below", False, "  esc to interrupt"),
        *(("claude", "above", False, f"{sign} Cooking… (3s)") for sign in "·✢✳✶✻✽*∗"),
        ("codex", "above", True, "• Working (3s • esc to interrupt)"),
        ("codex", "above", True, "◦ Working (2m 3s • esc to interrupt)"),
        ("codex", "above", True, "• Working (1h • esc to interrupt)"),
        ("gemini", "above", False, "⠏ Thinking (esc to cancel, 12s)"),
        *(("generic", place, False, "Escape to stop") for place in ("above", "below", "bare")),
        *(
            ("generic", place, False, f"esc to {verb}")
            for place in ("above", "below", "bare")
            for verb in ("interrupt", "cancel", "stop")
        ),
        ("generic", "below", False, "   ⬝⬝■■■⬝⬝⬝  esc"),
        (
            "generic",
            "below",
            False,
            "   ⬝⬝⬝⬝⬝⬝⬝⬝ Cannot connect to API: Unable to connect. [retrying in 1s attempt #1",
        ),
        *(("demo", "above", True, f"{sign} Thinking… (1s · esc to interrupt)") for sign in "·✢✳✶✻✽"),
    ],
)
def test_what_says_that_it_works(name: str, place: str, is_styled: bool, text: str) -> None:
    found = [sign for sign in RULES[name].busy if sign.place == place and sign.pattern.search(text)]

    assert [sign.is_styled for sign in found] == [is_styled]


@pytest.mark.parametrize(
    ("name", "place", "text", "until"),
    [
        ("claude", "above", "● You've hit your session limit · resets at 3pm · more", "3pm "),
        ("claude", "above", "You’ve reached your weekly limit", None),
        ("claude", "above", "You're out of extra usage · resets in 2h", "2h"),
        ("claude", "above", "Claude usage limit reached", None),
        ("codex", "above", "■ You've hit your usage limit. Try again at 3pm.", "3pm"),
        ("codex", "above", "■ You've hit your usage limit, it resets in 2h.", "2h"),
        ("gemini", "dialog", "Usage limit reached for it. Resets at 3pm.", "3pm"),
        ("gemini", "dialog", "Quota exceeded, try again in 2h.", "2h"),
        ("gemini", "dialog", "The quota limit", None),
    ],
)
def test_what_says_that_a_limit_is_reached(name: str, place: str, text: str, until: str | None) -> None:
    (sign,) = RULES[name].limits
    found = sign.pattern.search(text)

    assert found and found["until"] == until
    assert sign.place == place
    assert sign.is_styled is (name == "claude")


@pytest.mark.parametrize(
    ("name", "place", "text"),
    [
        ("claude", "below", "  ! for shell mode   double tap esc to clear"),
        ("claude", "below", "  ! for   double tap esc to clear"),
        *(("claude", "bare", f"Esc to {verb}") for verb in ("cancel", "close", "clear", "exit", "go back")),
        ("claude", "bare", "ctrl+o to toggle"),
        ("claude", "bare", "  Search prompts:"),
        ("codex", "below", "  ? / esc close"),
        *(("codex", "bare", f"esc {verb}") for verb in ("back", "close", "browse")),
        ("codex", "bare", "q close"),
        ("codex", "bare", "Press Enter to go on"),
        ("codex", "bare", "press esc"),
        ("gemini", "above", " Shortcuts See /help"),
        ("gemini", "above", " ! shell mode"),
        ("gemini", "above", " Ctrl+G open external editor"),
        *(("gemini", "bare", f"esc to {verb}") for verb in ("close", "go back")),
        ("gemini", "bare", "Press Esc"),
        *(("generic", "bare", f"Really? {ask}") for ask in ("[y/N]", "(yes/no):", "[Y/n/all] ")),
    ],
)
def test_what_covers_the_composer(name: str, place: str, text: str) -> None:
    assert kinds(RULES[name], "overlays", place, text) == [""]
    assert kinds(RULES[name], "overlays", place, "an answer") == []


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        (
            "claude",
            [
                "─" * 10,
                "╭──╮",
                "╰──╯",
                "❯ draft",
                "❯\xa0draft",
                "  ? for shortcuts",
                "  esc to interrupt",
                "  ⎿  Tip: try it",
            ],
        ),
        ("codex", ["› draft", "  ? for shortcuts", "3 lines · f2 to view", "  Worked for 3s • 10:09"]),
        (
            "gemini",
            [
                "▄" * 10,
                "▀" * 10,
                "─" * 10,
                " > draft",
                "  Shift+Tab to accept edits",
                "model  ? for shortcuts",
            ],
        ),
        ("generic", ["│ │", "╭────╮", "▄▀", "  ┃   QUEUED "]),
        ("demo", ["────", "❯ draft", "  ada · scripted demo, no model · help"]),
    ],
)
def test_what_is_never_part_of_an_answer(name: str, rows: list[str]) -> None:
    furniture = RULES[name].furniture

    assert [row for row in rows if not is_found(furniture, row)] == []
    assert not is_found(furniture, "an answer")


@pytest.mark.parametrize(
    ("name", "markers"),
    [
        ("claude", ["[Pasted text #1]", "[Pasted text #12 +59 lines]", "[Pasted text #1 +1 line]"]),
        ("codex", ["[Pasted Content 1234 chars]"]),
        (
            "gemini",
            ["[Pasted Text: 60 lines]", "[Pasted Text: 900 chars]", "[Pasted Text: 60 lines #2]"],
        ),
    ],
)
def test_what_stands_for_a_long_paste(name: str, markers: list[str]) -> None:
    marker = RULES[name].composer.paste_marker

    assert marker
    assert [text for text in markers if not marker.fullmatch(text)] == []


@pytest.mark.parametrize(
    ("name", "signs", "colours", "is_faint"),
    [
        ("claude", ["! ", "# ", "!\xa0", "!"], {"246", "#999999"}, True),
        ("codex", ["! ", "!"], set(), True),
        ("gemini", [" ! "], {"#afafaf", "248"}, True),
        ("generic", [], set(), True),
        ("shell", [], set(), False),
        ("demo", [], set(), True),
    ],
)
def test_how_a_composer_looks(name: str, signs: list[str], colours: set[str], is_faint: bool) -> None:
    composer = RULES[name].composer

    assert [sign for sign in signs if not (composer.other_sign and composer.other_sign.match(sign))] == []
    assert composer.placeholder_colours == colours
    assert composer.is_placeholder_faint is is_faint


@pytest.mark.parametrize(
    ("name", "text"),
    [("codex", "Ask Codex to do anything"), ("gemini", "  Type your message or @path/to/file ")],
)
def test_what_stands_in_an_empty_composer(name: str, text: str) -> None:
    assert is_found(RULES[name].composer.placeholder, text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        *((f"{sign} ", "generic") for sign in (">>>", "...", *">❯›»$%#λ➜", "In:", "me@host:~/a$", "│ >")),
        *((f"~/work {sign} ", "shell") for sign in "$#%>❯➜λ"),
    ],
)
def test_what_looks_like_a_prompt(text: str, name: str) -> None:
    sign = RULES[name].composer.sign

    assert sign and sign.match(text)


def test_the_side_of_a_box_closes_a_row() -> None:
    assert is_found(RULES["generic"].composer.edge, "text  │")
    assert is_found(RULES["generic"].composer.edge, "text ┃")


def test_an_error_of_codex_is_an_end_of_its_work() -> None:
    says = load_profile("codex").state_of

    assert [says(7501, f"state={word}") for word in ("idle", "done", "error")] == ["idle"] * 3
    assert says(7501, "app=codex:state=working") == "busy"


def test_every_shell_is_known() -> None:
    known = "bash sh zsh fish dash ksh mksh tcsh csh nu pwsh xonsh elvish ash"

    assert load_profile("shell").commands == tuple(known.split())


@pytest.mark.parametrize("sign", [" > ", " * "])
def test_gemini_takes_prompts_in_its_usual_mode_and_in_the_one_that_approves_everything(sign: str) -> None:
    composer = RULES["gemini"].composer

    assert composer.sign and composer.sign.match(sign)
    assert composer.other_sign and not composer.other_sign.match(sign)


def test_the_border_of_a_scrolled_composer_of_claude_is_known() -> None:
    composer = RULES["claude"].composer

    assert composer.scrolled and composer.scrolled.search("─── ↑ 4 more " + "─" * 100)
    assert composer.bottom and composer.bottom.search("─── ↓ 12 more " + "─" * 100)
    assert not composer.scrolled.search("─" * 100)
    assert composer.top and composer.top.search("─── History 1/3 " + "─" * 100)
