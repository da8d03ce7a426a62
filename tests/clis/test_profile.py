"""Profiles: loading, mistakes, choosing, versions, values that were measured."""

import subprocess
import sys
from pathlib import Path

import pytest

from csp.clis.profile import (
    DeliverySettings,
    DialogAnswer,
    ProfileKeys,
    checked,
    load_profile,
    load_profile_file,
    load_recorded_profile,
    profile_for,
)
from csp.clis.registry import adapter_names, profile_names
from csp.errors import BadInput, NotFound
from csp.terminal.screen import Frame, SignPlace
from csp.terminal.screen_reader import read_screen
from tests.terminal.drawn import drawn

NAMES = profile_names()


@pytest.fixture
def write(tmp_path: Path) -> "Writer":
    return Writer(tmp_path / "mine.toml")


class Writer:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, text: str) -> Path:
        self.path.write_text(f'name = "mine"\n{text}', "utf-8")
        return self.path


def test_the_profiles_of_csp_are_found() -> None:
    assert {"claude", "codex", "gemini", "demo", "generic", "shell"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_pattern_of_a_profile_compiles(name: str) -> None:
    assert checked(load_profile(name)).name == name


def test_a_profile_of_ours_that_has_moved_is_found_by_its_name(tmp_path: Path) -> None:
    assert load_recorded_profile(tmp_path / "profiles" / "claude.toml") == load_profile("claude")
    assert load_recorded_profile(tmp_path / "clis" / "codex" / "profile.toml") == load_profile("codex")
    with pytest.raises(BadInput):
        load_recorded_profile(tmp_path / "mine.toml")


def test_an_unknown_profile_is_refused_with_the_names() -> None:
    with pytest.raises(NotFound, match="unknown profile 'claud', expected one of: claude, codex, gemini"):
        load_profile("claud")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["claude"], "claude"),
        (["/opt/bin/claude", "--model", "x"], "claude"),
        (["node", "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js"], "claude"),
        (["npx", "-y", "@anthropic-ai/claude-code@2.1.197"], "claude"),
        (["codex", "resume"], "codex"),
        (["npx", "@openai/codex"], "codex"),
        (["bunx", "@openai/codex@latest", "--no-daemon"], "codex"),
        (["env", "A=1", "codex"], "codex"),
        (["nice", "-n", "10", "codex"], "codex"),
        (["npx", "one", "two", "three", "codex"], "generic"),
        (["C:/bin/claude.exe"], "claude"),
        (["csp", "demo", "ada"], "demo"),
        (["/x/bin/csp", "demo", "ada"], "demo"),
        (["uvx", "csp-groupchat", "demo", "ada"], "demo"),
        (["csp", "chat"], "generic"),
        (["csp"], "generic"),
        (["gemini"], "gemini"),
        (["npx", "@google/gemini-cli"], "gemini"),
        (["bash"], "shell"),
        (["-zsh"], "shell"),
        (["/bin/sh", "-c", "claude"], "shell"),
        (["aider"], "generic"),
        (["my-claude-wrapper"], "generic"),
        (["vim", "claude"], "generic"),
        (["python3", "bot.py"], "generic"),
        ([], "generic"),
    ],
)
def test_a_command_chooses_its_profile(command: list[str], name: str) -> None:
    assert profile_for(*command).name == name


@pytest.mark.parametrize(
    ("name", "said", "is_tested"),
    [
        ("claude", "2.1.197 (Claude Code)", True),
        ("claude", "2.1.9", True),
        ("claude", "2.2.0 (Claude Code)", False),
        ("claude", "2.0.99", False),
        ("claude", "12.1.0", False),
        ("claude", "2.1.328 (Claude Code)", True),
        ("codex", "codex-cli 0.166.0", True),
        ("codex", "codex-cli 0.169.0", True),
        ("codex", "codex-cli 0.170.0-alpha.1", False),
        ("gemini", "0.61.0", True),
        ("gemini", "0.62.1", False),
        ("claude", "no number", False),
        ("generic", "anything 1.0", True),
    ],
)
def test_the_version_range(name: str, said: str, is_tested: bool) -> None:
    assert load_profile(name).is_tested_version(said) is is_tested


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("[delivery]\ngap_mss = 5", "unknown key 'gap_mss' in [delivery]", "did you mean 'gap_ms'?"),
        ("comands = []", "unknown key 'comands' at the top", "did you mean 'commands'?"),
        ("zzz = 1", "unknown key 'zzz' at the top", "known keys: name, commands"),
        ("[delivery]\ngap_ms = true", "'delivery.gap_ms' is True, expected a whole number", ""),
        (
            "[delivery]\nenter_retry_ms = [1, 'x']",
            "'delivery.enter_retry_ms' is [1, 'x'], expected a list",
            "",
        ),
        ("[delivery]\nproof = 'faith'", "expected one of: hook, transcript, screen, none", ""),
        ("kind = 'robot'", "'kind' is 'robot', expected one of: agent, shell", ""),
        ("keys = 3", "'keys' is 3, expected a table", ""),
        ("[keys.approve]\nby_number = true", "'key' is missing in [keys.approve]", ""),
        ("[keys.deny]\nby_number = true", "'key' is missing in [keys.deny]", ""),
        ("[keys.deny]\nkey = 'n'\nby_number = 1", "'keys.deny.by_number' is 1, expected true or false", ""),
        ("commands = ['a', 1]", "'commands' is ['a', 1], expected a list of strings", ""),
        ("ready_s = '5'", "'ready_s' is '5', expected a number", ""),
        ("ready_s = true", "'ready_s' is True, expected a number", ""),
        ("versions = 2", "'versions' is 2, expected a string", ""),
        ("[capture]\nkind = 'x'", f"expected one of: {', '.join(adapter_names())}, screen, none", ""),
        ("[screen.composer]\nframe = 'x'", "expected one of: borders, shaded, sign, cursor, none", ""),
        ("[[signals]]\nosc = [0]\npattern = 'x'\nstate = 'x'", "expected one of: idle, busy, dialog", ""),
        *(
            (f"[[screen.{table}]]\npattern = 'x'\nplace = 'x'", "expected one of: above, below", "")
            for table in ("blocked", "limits", "overlays")
        ),
        ("signals = [3]", "'signals' is [3], expected tables, each under [[signals]]", ""),
        ("[[signals]]\nosc = [0]\npattern = 'x'", "'state' is missing in [signals]", ""),
        (
            "[[signals]]\nosc = [0]\npattern = '('\nstate = 'idle'",
            "pattern '(' is not a regular expression",
            "",
        ),
        ("[[screen.busy]]\npattern = 'x'", "'place' is missing in [screen.busy]", ""),
        ("[[screen.busy]]\npattern = 'x'\nplace = 'left'", "expected one of: above, below, dialog, bare", ""),
        ("[screen.composer]\nsign = '['", "[screen.composer] sign: pattern '[' is not", ""),
        ("[screen.dialog]\nchoice = 'x'", "'choice' needs the groups (?P<mark>)", ""),
        ("versions = '2.x'", "versions '2.x' is not a range, expected the form '>=2.1,<2.2'", ""),
        ("name = ", "is not TOML", ""),
    ],
)
def test_a_mistake_is_named_with_its_place(write: Writer, text: str, message: str, hint: str) -> None:
    with pytest.raises(BadInput) as caught:
        load_profile_file(write(text))

    assert message in caught.value.message
    assert str(write.path) in caught.value.message
    assert hint in caught.value.hint


def test_a_profile_may_say_all_of_this(write: Writer) -> None:
    text = """
commands = ["mine"]
installs = ["~/bin/mine"]
versions = ">=1"
version_args = ["-V"]
kind = "shell"
ready_s = 7
[keys]
submit = "s"
interrupt = "i"
clear = ["c", "d"]
queue = "q"
approve = {key = "a", by_number = false}
deny = {key = "n"}
[delivery]
gap_ms = 1
gap_per_kb_ms = 2
proof = "screen"
proof_s = 3
shown_s = 4.5
enter_retry_ms = [5, 6]
neutralise_at = "@"
multiline = false
typing_quiet_ms = 7
idle_stands_ms = 8
[capture]
kind = "none"
[[signals]]
osc = [9]
pattern = "x"
state = "dialog"
[screen]
furniture = "f"
[screen.composer]
frame = "shaded"
top = "t"
bottom = "b"
sign = "s"
other_sign = "o"
edge = "e"
placeholder = "p"
placeholder_colours = ["1"]
is_placeholder_faint = true
paste_marker = "m"
[screen.dialog]
choice = "(?P<mark>)(?P<number>)(?P<label>)"
top = "t"
side = "s"
is_question_first = true
question = "q"
max_rows_after = 3
kinds = [{pattern = "k", kind = "permission"}]
[[screen.blocked]]
pattern = "b"
place = "bare"
kind = "login"
[[screen.busy]]
pattern = "w"
place = "above"
is_styled = true
[[screen.limits]]
pattern = "l"
place = "below"
[[screen.overlays]]
pattern = "o"
place = "dialog"
"""
    profile = load_profile_file(write(text))
    rules = profile.rules
    composer, dialog = rules.composer, rules.dialog

    assert (profile.installs, profile.version_args, profile.is_shell) == (("~/bin/mine",), ("-V",), True)
    assert (profile.ready_s, profile.capture, profile.state_of(9, "x")) == (7, "none", "dialog")
    assert profile.keys == ProfileKeys(
        submit="s",
        interrupt="i",
        clear=("c", "d"),
        queue="q",
        approve=DialogAnswer(key="a", by_number=False),
        deny=DialogAnswer(key="n", by_number=True),
    )
    assert profile.delivery == DeliverySettings(
        gap_ms=1,
        gap_per_kb_ms=2,
        proof="screen",
        proof_s=3,
        shown_s=4.5,
        enter_retry_ms=(5, 6),
        neutralise_at="@",
        multiline=False,
        typing_quiet_ms=7,
        idle_stands_ms=8,
    )
    patterns = (
        *(composer.top, composer.bottom, composer.sign, composer.other_sign, composer.edge),
        *(composer.placeholder, composer.paste_marker, dialog.top, dialog.side, dialog.question),
        rules.furniture,
    )
    assert [found.pattern for found in patterns if found] == list("tbsoepmtsqf")
    assert (composer.frame, composer.placeholder_colours) == (Frame.SHADED, frozenset({"1"}))
    assert (composer.is_placeholder_faint, dialog.is_question_first, dialog.max_rows_after) == (True, True, 3)
    assert [(one.pattern.pattern, one.kind) for one in dialog.kinds] == [("k", "permission")]
    signs = [*rules.blocked, *rules.busy, *rules.limits, *rules.overlays]
    assert [(one.pattern.pattern, one.place, one.kind, one.is_styled) for one in signs] == [
        ("b", SignPlace.BARE, "login", False),
        ("w", SignPlace.ABOVE, "", True),
        ("l", SignPlace.BELOW, "", False),
        ("o", SignPlace.DIALOG, "", False),
    ]


def test_a_profile_without_a_name_or_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.toml").write_text("")
    with pytest.raises(BadInput, match="'name' is missing at the top"):
        load_profile_file(tmp_path / "empty.toml")
    with pytest.raises(BadInput, match="cannot be read"):
        load_profile_file(tmp_path / "none.toml")


def test_a_users_profile_has_what_it_says(write: Writer) -> None:
    profile = load_profile_file(
        write(
            'commands = ["bot"]\nversions = ">1.0,<=1.5"\n'
            '[keys]\nclear = ["\\u0015"]\n[keys.approve]\nkey = "y"\nby_number = false\n'
            "[delivery]\ngap_ms = 10\ngap_per_kb_ms = 4\n"
        )
    )

    assert profile.commands == ("bot",)
    assert profile.keys.clear == ("\x15",)
    assert profile.keys.approve
    assert profile.keys.approve.keys_for(3) == "y"
    assert profile.keys.deny is None
    assert profile.delivery.gap_s(2048) == pytest.approx(0.018)
    assert [profile.is_tested_version(text) for text in ("1.0", "1.0.1", "1.5", "1.5.1")] == [
        False,
        True,
        True,
        False,
    ]


def test_a_choice_is_answered_by_its_number() -> None:
    for name in ("claude", "codex", "gemini"):
        keys = load_profile(name).keys

        assert keys.approve
        assert keys.deny
        assert (keys.approve.keys_for(None), keys.approve.keys_for(2)) == ("1", "2")
        assert keys.deny.keys_for(None) == "\x1b"


@pytest.mark.parametrize(
    ("name", "number", "text", "state"),
    [
        ("claude", 0, "⠂ stub", "busy"),
        ("claude", 0, "✳ stub", "idle"),
        ("claude", 2, "⠐ Claude Code", "busy"),
        ("claude", 9, "⠂ stub", None),
        ("claude", 0, "vm", None),
        ("codex", 7501, "state=working:app=codex", "busy"),
        ("codex", 7501, "state=idle:app=codex", "idle"),
        ("codex", 7501, "state=done:app=codex", "idle"),
        ("codex", 7501, "state=blocked:app=codex:kind=permission", "dialog"),
        ("codex", 0, "[ . ] Action Required | stub | demo", "dialog"),
        ("codex", 0, "[ ! ] Action Required | demo", "dialog"),
        ("codex", 0, "⠏ stub | demo", "busy"),
        ("codex", 0, "stub | demo", "idle"),
        ("gemini", 0, "◇  Ready (demo)", "idle"),
        ("gemini", 0, "✦  Working… (demo)", "busy"),
        ("gemini", 0, "✋  Action Required (demo)", "dialog"),
        ("generic", 0, "◇  Ready (demo)", None),
    ],
)
def test_signs_outside_the_screen(name: str, number: int, text: str, state: str | None) -> None:
    assert load_profile(name).state_of(number, text) == state


CTRL_C, CTRL_U, ESC, HIDDEN, NARROW = "\x03", "\x15", "\x1b", "\u2060", "\u202f"
BACKSPACES = "{backspaces}"
ONE, STOP = DialogAnswer(key="1"), DialogAnswer(key=ESC)


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("claude", ProfileKeys(interrupt=ESC, clear=(CTRL_C, BACKSPACES), approve=ONE, deny=STOP)),
        ("codex", ProfileKeys(interrupt=ESC, clear=(CTRL_C, BACKSPACES), queue="\t", approve=ONE, deny=STOP)),
        ("gemini", ProfileKeys(interrupt=ESC, clear=(CTRL_C, BACKSPACES), approve=ONE, deny=STOP)),
        (
            "generic",
            ProfileKeys(
                interrupt=CTRL_C,
                clear=(CTRL_U, BACKSPACES),
                approve=DialogAnswer(key="\r"),
                deny=DialogAnswer(key=ESC),
            ),
        ),
        ("shell", ProfileKeys(interrupt=CTRL_C, clear=(CTRL_U,))),
        ("demo", ProfileKeys(interrupt=ESC, clear=(CTRL_C, BACKSPACES))),
    ],
)
def test_the_keys_are_those_that_were_tried(name: str, keys: ProfileKeys) -> None:
    assert load_profile(name).keys == keys
    assert load_profile(name).keys.submit == "\r"


@pytest.mark.parametrize(
    ("name", "ready_s", "capture", "delivery"),
    [
        (
            "claude",
            30,
            "claude",
            DeliverySettings(
                gap_ms=40,
                gap_per_kb_ms=2,
                proof="hook",
                proof_s=5,
                shown_s=2,
                enter_retry_ms=(250, 500, 1000, 1500, 2500, 3500),
                neutralise_at=NARROW,
                multiline=True,
                typing_quiet_ms=500,
                idle_stands_ms=300,
            ),
        ),
        (
            "codex",
            30,
            "codex",
            DeliverySettings(
                gap_ms=40,
                gap_per_kb_ms=2,
                proof="transcript",
                proof_s=5,
                shown_s=2,
                enter_retry_ms=(300, 600, 1000, 1500, 2500, 3500),
                multiline=True,
                typing_quiet_ms=500,
                idle_stands_ms=300,
            ),
        ),
        (
            "gemini",
            60,
            "gemini",
            DeliverySettings(
                gap_ms=120,
                gap_per_kb_ms=20,
                proof="hook",
                proof_s=8,
                shown_s=3,
                enter_retry_ms=(500, 700, 1000, 1500, 2500, 3500),
                neutralise_at=NARROW,
                multiline=True,
                typing_quiet_ms=500,
                idle_stands_ms=300,
            ),
        ),
        (
            "generic",
            10,
            "screen",
            DeliverySettings(
                gap_ms=150,
                gap_per_kb_ms=5,
                proof="none",
                proof_s=2,
                shown_s=2,
                neutralise_at=HIDDEN,
                multiline=True,
                typing_quiet_ms=500,
                idle_stands_ms=700,
            ),
        ),
        (
            "shell",
            5,
            "none",
            DeliverySettings(gap_ms=20, proof="none", multiline=False, idle_stands_ms=1000),
        ),
        (
            "demo",
            10,
            "plain",
            DeliverySettings(
                gap_ms=0,
                proof="transcript",
                proof_s=5,
                shown_s=2,
                enter_retry_ms=(300, 600, 1000, 1500, 2500, 3500),
                multiline=True,
                typing_quiet_ms=500,
                idle_stands_ms=100,
            ),
        ),
    ],
)
def test_the_times_are_those_that_were_measured(
    name: str, ready_s: float, capture: str, delivery: DeliverySettings
) -> None:
    """A change belongs here too, with a new measurement."""
    profile = load_profile(name)

    assert profile.delivery == delivery
    assert (profile.ready_s, profile.capture) == (ready_s, capture)


def test_what_a_profile_does_not_say_is_careful(write: Writer) -> None:
    profile = load_profile_file(write(""))

    assert (profile.kind, profile.ready_s, profile.capture) == ("agent", 30.0, "screen")
    assert profile.version_args == ("--version",)
    assert profile.rules.composer.frame is Frame.NONE
    assert profile.keys == ProfileKeys(submit="\r", interrupt="", clear=(), queue="")
    assert profile.delivery == DeliverySettings(
        gap_ms=150,
        gap_per_kb_ms=0,
        proof="none",
        proof_s=5.0,
        shown_s=2.0,
        enter_retry_ms=(),
        neutralise_at="",
        multiline=True,
        typing_quiet_ms=500,
        idle_stands_ms=300,
    )


def test_claude_is_looked_for_where_its_installers_put_it() -> None:
    assert load_profile("claude").installs == ("~/.claude/local/claude", "~/.local/bin/claude")


def test_shells_are_only_shown() -> None:
    assert load_profile("shell").is_shell
    assert not load_profile("generic").is_shell


def test_enter_is_given_up_within_the_time_a_message_may_take() -> None:
    for name in ("claude", "codex", "gemini"):
        delivery = load_profile(name).delivery
        total = delivery.gap_s(20_000) + sum(delivery.enter_retry_ms) / 1000 + delivery.proof_s

        assert delivery.enter_retry_ms
        assert total < 20


@pytest.mark.parametrize(
    ("picture", "draft", "dialog"),
    [
        ("> █", "", None),
        (">>> █", "", None),
        ("In [1]: █", None, None),
        ("me: hello█", "hello", None),
        ("╭──────────╮\n│ > hi█    │\n╰──────────╯", "hi", None),
        ("Overwrite file? [y/N] █", None, "overlay"),
        ("Continue (yes/no)? █", None, "overlay"),
        ("Which one do you want?\n❯ 1. This\n  2. That\n█", None, "permission"),
        ("Pick a colour\n▶ 1) Red\n  2) Blue\n█", None, "menu"),
        ("downloading 40 %█", None, None),
    ],
)
def test_what_generic_makes_of_common_programs(picture: str, draft: str | None, dialog: str | None) -> None:
    reading = read_screen(drawn(picture), load_profile("generic").rules)

    assert (reading.composer.text if reading.composer else None) == draft
    assert (reading.dialog.kind if reading.dialog else None) == dialog


LINE = "─" * 40


@pytest.mark.parametrize(
    ("notice", "until"),
    [
        ("*● You've hit your session limit · resets 3pm (Europe/Zurich)*", "3pm (Europe/Zurich)"),
        ("*⎿  You've hit your limit · resets in 2h 5m*", "2h 5m"),
        ("*● You've reached your weekly limit*", ""),
        ("*● You've hit your Opus limit · resets*\n*  Nov 20, 9am*", "Nov 20, 9am"),
        ("● You've hit your session limit · resets 3pm", None),
        ("*▎ You've hit your limit · resets 3pm*", None),
        ("*● An answer about how you've hit your limit*", None),
    ],
)
def test_usage_limits_of_claude(notice: str, until: str | None) -> None:
    rules = load_profile("claude").rules
    limit = read_screen(drawn(f"{notice}\n\n✻ Cooked for 1s\n\n{LINE}\n❯ █\n{LINE}"), rules).limit

    assert (limit.until_text if limit else None) == until


def test_the_launcher_gets_a_profile_without_heavy_imports() -> None:
    code = (
        "import sys; from csp.clis.profile import profile_for; p = profile_for('claude'); p.delivery;"
        "print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    heavy = {
        "msgspec",
        "asyncio",
        "websockets",
        "ctypes",
        "difflib",
        "csp.terminal.screen",
        "csp.terminal.screen_reader",
    }
    assert heavy & set(run.stdout.split()) == set()
