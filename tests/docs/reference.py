"""Write the reference pages from the code: python -m tests.docs.reference

Each function returns one page of docs/reference/. tests/docs/test_reference.py fails when a page differs.
"""

import argparse
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import NoneType
from typing import Any, Final, get_args, get_origin

from csp.cli.parser import top_parser, verb_parser
from csp.cli.verbs import VERBS
from csp.clis import profile_schema
from csp.clis.profile import ProfileTables
from csp.config import settings_markdown
from csp.gateway.route_table import Route, body_of
from csp.gateway.routes import ROUTES
from csp.gateway.websocket import OPS
from csp.mcp.tool_texts import sections
from csp.mcp.tools import TOOLS
from csp.protocol import events
from csp.protocol.catalogue import COMMANDS
from csp.protocol.notices import NoticeCode
from csp.protocol.requests import WatchBody
from csp.protocol.responses import Deliver, ErrorView
from csp.room.permissions import OPS as OP_ROLES
from csp.room.permissions import Parties, Party
from csp.room.sessions.modes import build_catalogue
from csp.terminal.screen import ScreenRules
from tests.docs.profile_keys import MEANINGS
from tests.docs.schema_tables import field_rows, fields_table, table

ROOT: Final = Path(__file__).resolve().parent.parent.parent
FOLDER: Final = ROOT / "docs" / "reference"
_MADE: Final = "<!-- Made by `python -m tests.docs.reference`; edit the code instead. -->\n\n"
_WHO: Final = {
    Party.NONE: "anybody",
    Party.AGENT: "agents",
    Party.ORCHESTRATOR: "the orchestrator",
    Party.PAGE: "the page",
    Party.ROOM: "the room's token",
}


def may_call(parties: Parties) -> str:
    if Party.NONE in parties:
        return "anybody, without a token"
    return ", ".join(text for party, text in _WHO.items() if party in parties)


# --- the command line ----------------------------------------------------------------------------


def commands() -> str:
    parts = [
        "# Commands\n",
        "Every verb of `csp`, with its options. `csp VERB --help` prints the same in the terminal. Results "
        "go to stdout and everything else to stderr. The exit code is 0 for success, 1 for a failure and 2 "
        "for wrong usage.\n",
        "Options that every verb takes:\n",
        _options(top_parser()),
    ]
    for verb in VERBS:
        parser = verb_parser(verb)
        parts.append(f"\n## csp {verb.name}\n\n{_sentence(verb.help)}\n")
        parts += [f"{rows}\n"] if (rows := _options(parser, is_verb=True)) else []
        examples = "\n".join(f"csp {line.removeprefix('csp ')}" for line in _examples(parser))
        parts.append(f"```text\n{examples}\n```")
    return "\n".join(parts) + "\n"


def _options(parser: argparse.ArgumentParser, *, is_verb: bool = False) -> str:
    shared = {"--help", "--room", "--verbose"} if is_verb else set()
    rows = []
    for action in parser._actions:
        if action.help == argparse.SUPPRESS or shared & {*action.option_strings}:
            continue
        name = ", ".join(action.option_strings)
        value = action.metavar if isinstance(action.metavar, str) else ""
        rows.append((f"`{' '.join(part for part in (name, value) if part)}`", _plain(action.help or "")))
    return table(("argument", "meaning"), rows) if rows else ""


def _plain(text: str) -> str:
    """Return a text of the code as Markdown: outside of code a `<` is no tag."""
    parts = text.replace("%%", "%").split("`")
    return "`".join(part if number % 2 else part.replace("<", "&lt;") for number, part in enumerate(parts))


def _examples(parser: argparse.ArgumentParser) -> list[str]:
    lines = (parser.epilog or "").splitlines()[1:]
    return [line.strip() for line in lines]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def settings() -> str:
    return (
        "# Settings\n\n"
        "A flag wins over the environment, the environment over `./csp.toml`, and that over "
        "`~/.config/csp/config.toml`. `csp config` prints every value with its source. The key "
        "`room.host` is `host` in the table `[room]` of a toml file.\n\n"
        f"<!-- settings -->\n{settings_markdown()}\n<!-- /settings -->\n\n"
        "The agents of a room are `[[agent]]` tables of `csp.toml`, see "
        "[Your agents](../agents/index.md#agents-in-csptoml).\n"
    )


def pane_commands() -> str:
    rows = [(f"`{row.form}`", _plain(row.help)) for row in COMMANDS]
    on_page = ", ".join(f"`/{row.name}`" for row in COMMANDS if row.is_page_command)
    return (
        "# Commands of the human pane\n\n"
        "What you can type in the human pane, which `csp chat` opens in any terminal. "
        "[The human pane](../human-pane.md) explains how to use it.\n\n"
        f"{table(('command', 'does'), rows)}\n\n"
        f"The page in the browser takes these of them: {on_page}.\n"
    )


# --- the gateway ---------------------------------------------------------------------------------


def http() -> str:
    groups: dict[str, list[Route]] = {}
    for route in ROUTES:
        groups.setdefault(route.path.strip("/").partition("/")[0] or "page", []).append(route)
    parts = [
        "# HTTP routes\n",
        "`GET /openapi.json` describes the same routes for programs. The token goes into the header "
        "`X-Auth-Token`, or `Authorization: Bearer`. Bodies and answers are JSON, whatever the "
        "`Content-Type`. [For programs](../programs/http.md) has a walk through the most used routes.\n",
        f"An error has this body, with a status of 400 or above:\n\n{fields_table(ErrorView)}\n",
    ]
    for route in (route for routes in groups.values() for route in routes):
        parts.append(f"\n## {route.name}\n\n{_plain(route.summary)}.\n")
        parts.append(f"- Who may call it: {may_call(route.row.parties)}.")
        parts += [
            f"- Only the room's token may give `{name}`; {_plain(hint)}."
            for name, hint in route.row.shell.items()
        ]
        parts.append(f"- Answer: {route.status}, {_answer(route)}.")
        if rows := field_rows(route.query):
            parts.append(f"\nIn the query: {'; '.join(_brief(*row) for row in rows)}.")
        if route.body is not None and (body := fields_table(route.body)):
            parts.append(f"\nIn the body:\n\n{body}")
    return "\n".join(parts) + "\n"


def _brief(name: str, kind: str, default: str, help: str) -> str:
    about = ", ".join(part for part in (kind, default if default != "required" else "required", help) if part)
    return f"{name} ({about})"


def _answer(route: Route) -> str:
    answer = route.answer
    if answer is str:
        return "text"
    if args := get_args(answer):
        return f"a list of `{getattr(args[0], '__name__', args[0])}`"
    return f"`{getattr(answer, '__name__', answer)}`"


def websocket() -> str:
    parts = [
        "# WebSocket operations\n",
        "`GET /ws?after=SEQ` opens a WebSocket. [HTTP and WebSocket](../programs/http.md#websocket) explains "
        "the frames that the gateway sends. This page lists the operations that a client may send. Each is a "
        "JSON object with `op`, an optional `ref`, and the fields below. The gateway answers "
        '`{"ref": 7, "ok": true, ...}` or `{"ref": 7, "error": "...", "hint": "..."}`.\n',
    ]
    for name, row in OP_ROLES.items():
        body = WatchBody if name in ("watch", "unwatch") else body_of(OPS[name])
        parts.append(f"\n## {name}\n\nWho may send it: {may_call(row.parties)}.\n")
        parts.append(fields_table(body) if body is not None else "")
    parts.append("\n## The deliver frame\n\nThe gateway sends it to the recipient of a message alone.\n")
    parts.append(fields_table(Deliver))
    return "\n".join(parts).rstrip() + "\n"


def event_types() -> str:
    common = {name.strip("`") for name, *_ in field_rows(events.Event)}
    message = {name.strip("`") for name, *_ in field_rows(events.MessageEvent)}
    kinds = sorted(get_args(events.KnownEvent), key=lambda kind: str(kind.__struct_config__.tag))
    parts = [
        "# Events\n",
        "Every line of the journal is one event, and watchers get the same bytes over the WebSocket. "
        "[The journal](../journal.md) explains the file. Fields with their default value are left out.\n",
        f"## Fields of every event\n\n{fields_table(events.Event, frozenset({'type'}))}\n",
        "A line of the journal starts with `v` (the version of the format) and `type`, and ends with `crc` "
        "(its checksum).\n",
        f"## Fields of every message\n\n{fields_table(events.MessageEvent, frozenset(common))}",
    ]
    for kind in kinds:
        is_message = issubclass(kind, events.MessageEvent)
        known = message if is_message else common
        parts.append(f"\n## {kind.__struct_config__.tag}\n\n{_doc(kind)}\n")
        if is_message:
            parts.append("It has the fields of every message.\n")
        parts.append(fields_table(kind, frozenset(known | {"type"})))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"


def _doc(kind: type[Any]) -> str:
    doc = vars(kind).get("__doc__") or ""
    if doc.startswith(f"{kind.__name__}("):
        doc = ""
    return _plain(inspect.cleandoc(doc)) or "A person sent a message."


def mcp_tools() -> str:
    texts = sections("tools.md")
    parts = [
        "# MCP tools\n",
        "The tools of `csp mcp` and `POST /mcp`. [The room as tools](../programs/mcp.md) explains how to "
        "connect a client.\n",
    ]
    for tool in TOOLS:
        parts.append(f"\n## {tool.name}\n\n{_plain(texts.get(tool.name, ''))}\n")
        parts.append(f"Who may call it: {may_call(tool.row.parties)}.\n")
        parts.append(fields_table(tool.takes) or "It takes no arguments.")
    return "\n".join(parts).rstrip() + "\n"


# --- words ---------------------------------------------------------------------------------------


def modes() -> str:
    rows = []
    for mode in build_catalogue().modes:
        length = f"{mode.rounds} {mode.unit}" if mode.unit else "fixed" if mode.rounds else "no fixed length"
        options = ", ".join(f"`{option}`" for option in mode.options)
        rows.append((f"`{mode.id}`", mode.about, length, options))
    return (
        "# Modes\n\n"
        "The modes as `GET /catalogue` lists them. [Decide](../decide.md), [Collaborate](../collaborate.md) "
        "and [Build and review](../review.md) explain how to use them.\n\n"
        f"{table(('mode', 'what happens', 'default length', 'options'), rows)}\n"
    )


def states() -> str:
    found = build_catalogue()
    delivery = [(f"`{row.id}`", row.sign, _plain(row.text)) for row in found.delivery_states]
    held = [
        (f"`{row.id}`", _plain(row.text), f"`{row.remedy}`" if row.remedy else "")
        for row in found.held_reasons
    ]
    agents = [(f"`{row.id}`", _plain(row.text)) for row in found.agent_states]
    ends = [(f"`{row.id}`", _plain(row.text)) for row in found.end_reasons]
    return (
        "# States and reasons\n\n"
        "The names that programs read, and the words that people see for them.\n\n"
        f"## States of a delivery\n\n{table(('state', 'sign', 'shown as'), delivery)}\n\n"
        f"## Why a message is held\n\n{table(('reason', 'shown as', 'what you can do'), held)}\n\n"
        f"## States of an agent\n\n{table(('state', 'shown as'), agents)}\n\n"
        f"## Why a session ended\n\n{table(('reason', 'shown as'), ends)}\n"
    )


def notices() -> str:
    rows = [(f"`{code.value}`", _plain(code.template.replace("\n", " "))) for code in NoticeCode]
    return (
        "# Notices\n\n"
        "A notice is a short text of the room for people. Its event is `system` and carries the code, the "
        "parameters and the text. Programs use the code: the text may change in any version.\n\n"
        f"{table(('code', 'text'), rows)}\n"
    )


def profile_keys() -> str:
    rows = [
        (f"`{path}`", kind, _plain(MEANINGS.get(path, "")), " ".join(f"`{one}`" for one in choices))
        for path, kind, choices in profile_paths()
    ]
    return (
        "# Keys of a profile\n\n"
        "A profile is a toml file that describes a CLI: its keys, its screen and how a message is delivered "
        "to it. `csp sidecar --profile-file FILE` uses one of your own; those of CSP are "
        "`csp/clis/NAME/profile.toml`. [Other CLIs](../agents/other.md) shows how to write one.\n\n"
        "A key such as `keys.submit` is `submit` in the table `[keys]`. `[[...]]` marks an array of tables, "
        "of which there may be any number.\n\n"
        f"{table(('key', 'value', 'meaning', 'one of'), rows)}\n\n"
        "A sign has a `pattern`, which is a regular expression, and a `place`: `above` the input box, "
        "`below` it, in a `dialog`, or on a `bare` screen without an input box. `kind` names what it is, for "
        "people, and `is_styled` asks for a row that the CLI has drawn in a colour.\n"
    )


def profile_paths(kind: type = ProfileTables, path: str = "") -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield the keys of a profile with the type and the allowed values of each."""
    for key, parameter in inspect.signature(kind).parameters.items():
        place = f"{path}.{key}".lstrip(".")
        wanted = parameter.annotation
        if NoneType in get_args(wanted):
            wanted, _ = get_args(wanted)
        choices = profile_schema.choices_of(wanted, place)
        if choices or wanted in profile_schema.EXPECTED:
            yield place, profile_schema.EXPECTED[str if choices else wanted], choices
        elif get_origin(wanted) is tuple:
            keys = ", ".join(f"`{name}`" for name in inspect.signature(get_args(wanted)[0]).parameters)
            yield f"[[{place}]]", f"tables with {keys}", ()
        elif place == "screen":
            yield from profile_paths(ScreenRules, place)
        elif "key" in inspect.signature(wanted).parameters:
            yield place, "a table with `key` and `by_number`", ()
        else:
            yield from profile_paths(wanted, place)


PAGES: Final[dict[str, Callable[[], str]]] = {
    "commands.md": commands,
    "pane-commands.md": pane_commands,
    "settings.md": settings,
    "modes.md": modes,
    "states.md": states,
    "notices.md": notices,
    "http.md": http,
    "websocket.md": websocket,
    "events.md": event_types,
    "mcp-tools.md": mcp_tools,
    "profiles.md": profile_keys,
}


# --- for language models -------------------------------------------------------------------------


def llms_txt() -> str:
    """Return an index of the pages for language models, in the form of llmstxt.org."""
    parts = [
        "# CSP\n",
        "> A group chat in tmux for people and the AI coding CLIs that they already run, such as Claude "
        "Code, Codex and Gemini CLI.\n",
    ]
    for heading, names in toctrees():
        parts.append(f"## {heading}\n")
        parts += [f"- [{title}]({name}.md): {first}" for name in names for title, first in [about(name)]]
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def toctrees() -> list[tuple[str, list[str]]]:
    """Return the captions of the index with the pages under each, those of sub-indexes among them."""
    text = (ROOT / "docs" / "index.md").read_text("utf-8")
    return [
        (caption, pages_of(body))
        for caption, body in re.findall(
            r"```\{toctree\}\n(?::\w+:\n)*:caption: (.+)\n(?::\w+:.*\n)*\n((?:.+\n)+?)```", text
        )
    ]


def pages_of(body: str, folder: str = "") -> list[str]:
    names: list[str] = []
    for line in body.split():
        name = f"{folder}{line}"
        names.append(name)
        if name.endswith("/index"):
            text = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
            inner = re.findall(r"```\{toctree\}\n(?::.*\n)*\n((?:.+\n)+?)```", text)
            names += [page for part in inner for page in pages_of(part, f"{name.removesuffix('index')}")]
    return names


def about(name: str) -> tuple[str, str]:
    """Return the title and the first sentence of a page."""
    text = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    assert title is not None, f"docs/{name}.md has no title"
    after = text[title.end() :]
    paragraph = next((part for part in re.split(r"\n\s*\n", after) if re.match(r"\s*[A-Z`*\[]", part)), "")
    words = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", " ".join(paragraph.split()))
    first = re.match(r".+?[.](?=\s|$)", words)
    return title[1], first[0] if first else words


def stale_pages() -> dict[Path, str]:
    """Return the files that differ from what the code says, with the text that they should have."""
    made = {FOLDER / name: _MADE + page() for name, page in PAGES.items()}
    made[ROOT / "docs" / "llms.txt"] = llms_txt()
    return {
        path: text for path, text in made.items() if not path.is_file() or path.read_text("utf-8") != text
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.docs.reference")
    parser.add_argument("--check", action="store_true", help="change nothing, fail if a page is out of date")
    is_check = parser.parse_args().check
    stale = stale_pages()
    for path, text in stale.items():
        print(f"{'out of date' if is_check else 'written'}: {path.relative_to(ROOT)}")
        if not is_check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
    sys.exit(bool(stale) and is_check)


if __name__ == "__main__":
    main()
