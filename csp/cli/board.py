"""Write on the whiteboard, search it, show it, or export it."""

import time
from typing import Final

from csp.cli.arguments import ANY, JSON, WHOLE, Forms, switch, takes, value
from csp.cli.output import put, talk
from csp.cli.send import read_stdin
from csp.cli.verb_call import VerbCall
from csp.errors import BadInput, Broken
from csp.http_client import Object, field, note_path, objects
from csp.human.safe_text import count

_FILTERS: Final = ("session", "author", "kind", "tag", "limit")
_FORMS: Final = Forms("board", default="show")


@takes(
    value(
        "form",
        "FORM",
        "add TEXT, search WORDS, show [NOTE], export [DIR] or summarise; default: show; "
        "add - reads stdin; put -- before words that start with -",
        nargs="*",
    ),
    value("--session", "S", "only this session's board; with add: default is the room's board"),
    value("--author", "A", "only notes of this author"),
    value("--kind", "K", "only notes of this kind", choices=("note", "reply", "summary")),
    value("--tag", "T", "only notes with this tag; with add: tags for the note, as A,B"),
    value("--limit", "N", "number of notes; default: 50, or 10 for a search", type=WHOLE),
    switch("--rerank", "with search: compare more notes word by word"),
    value("--id", "ID", "with add: id of the note; the same id is never written twice"),
    value("--by", "AGENT", "with summarise: agent that writes the summary"),
    JSON,
    examples=(
        "csp board add 'the parser must keep tabs' --tag parser,decision",
        "csp board search 'who owns the retry logic?' --session s-12 --rerank",
        "csp board search test_roles --json",
        "csp board show n-418",
        "csp board summarise --session s-12 --by claude",
        "csp board export notes --session s-12",
    ),
)
def board(call: VerbCall) -> int:
    """Run the form named by the first word."""
    return _FORMS.do(call)


@_FORMS.form("add", ANY, ("session", "tag", "id"))
def _add(call: VerbCall, words: list[str]) -> int:
    text = read_stdin() if words == ["-"] else " ".join(words)
    if not text.strip():
        raise BadInput("expected text to write", "for example: csp board add 'the parser must keep tabs'")
    args = call.args
    body: Object = {"text": text, "tags": args.tag.split(",") if args.tag else []}
    body |= {key: value for key, value in (("session", args.session), ("id", args.id)) if value}
    answer = call.gateway.post_once("/board", body)
    if call.is_json:
        return call.show(answer, ())
    return call.show(answer, [field(field(answer, "note", dict), "id", str)])


@_FORMS.form("search", ANY, (*_FILTERS, "rerank"))
def _search(call: VerbCall, words: list[str]) -> int:
    if not " ".join(words).strip():
        raise BadInput("expected words to search for", "for example: csp board search 'retry logic'")
    args = {name: getattr(call.args, name) for name in _FILTERS}
    answer = call.gateway.get("/board/search", q=" ".join(words), rerank=int(call.args.rerank), **args)
    if call.is_json:
        return call.show(answer, ())
    hits = objects(field(answer, "items", list))
    lines = (f"{_line(field(hit, 'note', dict))}  ({hit.get('how')} {hit.get('score')})" for hit in hits)
    return call.show(answer, lines, count(len(hits), "result"))


@_FORMS.form("show", 1, _FILTERS)
def _show(call: VerbCall, words: list[str]) -> int:
    if words:
        note = call.gateway.get(note_path(words[0]))
        return call.show(note, () if call.is_json else (note_head(note), field(note, "text", str)))
    answer = call.gateway.get("/board", **{name: getattr(call.args, name) for name in _FILTERS})
    if call.is_json:
        return call.show(answer, ())
    notes = objects(field(answer, "items", list))
    nothing = "" if notes else "the board is empty; add a note with: csp board add TEXT"
    return call.show(answer, map(_line, notes), nothing)


@_FORMS.form("export", 1, ("session",))
def _export(call: VerbCall, words: list[str]) -> int:
    answer = call.gateway.get("/board/export", session=call.args.session)
    if call.is_json:
        return call.show(answer, ())
    root = (call.cwd / (words[0] if words else ".")).resolve()
    files = objects(field(answer, "files", list))
    for file in files:
        path = (root / field(file, "path", str)).resolve()
        if not path.is_relative_to(root):
            raise Broken(f"the gateway named a file outside {str(root)!r}: {str(path)!r}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(field(file, "text", str), encoding="utf-8", errors="replace")
        except OSError as exc:
            reason = (exc.strerror or str(exc)).lower()
            raise BadInput(f"cannot write {str(path)!r}: {reason}", "name another directory") from exc
        put(str(path))
    talk(f"wrote {len(files)} notes")
    return 0


@_FORMS.form("summarise", 0, ("session", "by"))
def _summarise(call: VerbCall, words: list[str]) -> int:
    if not call.args.by:
        example = "for example: csp board summarise --by claude"
        raise BadInput("expected --by AGENT, the agent that writes the summary", example)
    body = {"by": call.args.by} | ({"session": call.args.session} if call.args.session else {})
    answer = call.gateway.post("/board/summarise", body)
    count = len(answer.get("stands_for", ()))
    return call.tell(answer, f"asked {answer.get('by')} to sum up {count} notes of {answer.get('session')}")


def note_head(note: Object) -> str:
    """Return a note's metadata as one line."""
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(field(note, "ts", float)))
    tags = "".join(f" #{tag}" for tag in field(note, "tags", list))
    kind = "" if note.get("kind") == "note" else f" {note.get('kind')}"
    stands_for = f" of {len(note['stands_for'])} notes" if note.get("stands_for") else ""
    place = f"{note.get('session')}/{field(note, 'idx', int):04d}"
    return f"{note.get('id')} {clock} {place} {note.get('author')}{kind}{stands_for}{tags}"


def _line(note: Object) -> str:
    return f"{note_head(note)}: {field(note, 'text', str)}".replace("\n", "\n    ")
