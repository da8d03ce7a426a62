"""Write on the whiteboard, search it, show it, export it."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from csp.cli.output import put, put_json, put_lines, talk
from csp.cli.send import read_stdin
from csp.cli.verb_call import VerbCall
from csp.config import nearest
from csp.errors import BadInput, Broken
from csp.http_client import Object, field, note_path, objects

_ANY: Final = 1 << 20
_HELP: Final = "see: csp board --help"
_OPTIONS: Final = ("session", "author", "kind", "tag", "limit", "rerank", "id", "by")
_FILTERS: Final = ("session", "author", "kind", "tag", "limit")


class _Form(NamedTuple):
    """One form: its function, the number of words it takes and its options."""

    do: Callable[[VerbCall, list[str]], int]
    words: int = 0
    options: tuple[str, ...] = ()


def board(call: VerbCall) -> int:
    """Run the form that the first word names."""
    name, *words = call.args.form or ["show"]
    form = _FORMS.get(name)
    if form is None:
        hint = nearest(name, list(_FORMS)) or _HELP
        raise BadInput(f"unknown form {name!r} of board, expected one of: {', '.join(_FORMS)}", hint)
    if len(words) > form.words:
        raise BadInput(f"csp board {name} takes no {words[form.words]!r}", _HELP)
    for option in _OPTIONS:
        if option not in form.options and getattr(call.args, option, None) not in (None, False):
            raise BadInput(f"csp board {name} takes no --{option}", _HELP)
    return form.do(call, words)


def _add(call: VerbCall, words: list[str]) -> int:
    text = read_stdin() if words == ["-"] else " ".join(words)
    if not text.strip():
        raise BadInput("expected what to write", "for example: csp board add 'the parser must keep tabs'")
    args = call.args
    body: Object = {"text": text, "tags": args.tag.split(",") if args.tag else []}
    body |= {key: value for key, value in (("session", args.session), ("id", args.id)) if value}
    answer = call.gateway.post_once("/board", body)
    if call.is_json:
        put_json(answer)
    else:
        put(field(field(answer, "note", dict), "id", str))
    return 0


def _search(call: VerbCall, words: list[str]) -> int:
    if not " ".join(words).strip():
        raise BadInput("expected what to look for", "for example: csp board search 'retry logic'")
    args = {name: getattr(call.args, name) for name in _FILTERS}
    answer = call.gateway.get("/board/search", q=" ".join(words), rerank=int(call.args.rerank), **args)
    if call.is_json:
        put_json(answer)
        return 0
    hits = objects(field(answer, "items", list))
    put_lines(f"{_line(field(hit, 'note', dict))}  ({hit.get('how')} {hit.get('score')})" for hit in hits)
    provider, took = field(answer, "provider", str), field(answer, "took_ms", float)
    talk(f"{len(hits)} found by {provider} in {took:.0f} ms")
    return 0


def _show(call: VerbCall, words: list[str]) -> int:
    if words:
        note = call.gateway.get(note_path(words[0]))
        if call.is_json:
            put_json(note)
        else:
            put_lines([_head(note), field(note, "text", str)])
        return 0
    answer = call.gateway.get("/board", **{name: getattr(call.args, name) for name in _FILTERS})
    if call.is_json:
        put_json(answer)
        return 0
    notes = objects(field(answer, "items", list))
    put_lines(map(_line, notes))
    if not notes:
        talk("nothing is on the board; write on it with: csp board add TEXT")
    return 0


def _export(call: VerbCall, words: list[str]) -> int:
    answer = call.gateway.get("/board/export", session=call.args.session)
    if call.is_json:
        put_json(answer)
        return 0
    root = (call.cwd / (words[0] if words else ".")).resolve()
    files = objects(field(answer, "files", list))
    for file in files:
        path = (root / field(file, "path", str)).resolve()
        if not path.is_relative_to(root):
            raise Broken(f"the gateway named a file outside of {str(root)!r}: {str(path)!r}")
        _write(path, field(file, "text", str))
        put(str(path))
    talk(f"wrote {len(files)} notes")
    return 0


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as exc:
        reason = (exc.strerror or str(exc)).lower()
        raise BadInput(f"cannot write {str(path)!r}: {reason}", "name another directory") from exc


def _summarise(call: VerbCall, words: list[str]) -> int:
    if not call.args.by:
        example = "for example: csp board summarise --by claude"
        raise BadInput("expected --by AGENT, who writes the summary", example)
    body = {"by": call.args.by} | ({"session": call.args.session} if call.args.session else {})
    answer = call.gateway.post("/board/summarise", body)
    if call.is_json:
        put_json(answer)
    else:
        count = len(field(answer, "stands_for", list))
        talk(f"asked {answer.get('by')} to sum up {count} notes of {answer.get('session')}")
    return 0


def _head(note: Object) -> str:
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(field(note, "ts", float)))
    tags = "".join(f" #{tag}" for tag in field(note, "tags", list))
    kind = "" if note.get("kind") == "note" else f" {note.get('kind')}"
    stands_for = f" of {len(note['stands_for'])} notes" if note.get("stands_for") else ""
    place = f"{note.get('session')}/{field(note, 'idx', int):04d}"
    return f"{note.get('id')} {clock} {place} {note.get('author')}{kind}{stands_for}{tags}"


def _line(note: Object) -> str:
    return f"{_head(note)}: {field(note, 'text', str)}".replace("\n", "\n    ")


_FORMS: Final = {
    "add": _Form(_add, _ANY, ("session", "tag", "id")),
    "search": _Form(_search, _ANY, (*_FILTERS, "rerank")),
    "show": _Form(_show, 1, _FILTERS),
    "export": _Form(_export, 1, ("session",)),
    "summarise": _Form(_summarise, 0, ("session", "by")),
}
