"""Compute a demo agent's reply to a prompt with fixed rules, without a model.

Nothing here is random or remembered: the same prompt in the same turn gets the same reply. Text from a prompt
is quoted only inside our own sentences, so that no line of a reply becomes a command by accident.
"""

import json
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from csp.agents.demo import review_script
from csp.agents.demo.demo_prompt import DemoPrompt, Kind, Said
from csp.agents.demo.personas import CONDUCTOR, PERSONAS, Persona
from csp.room.agent_text import Finish, HandOver

T = TypeVar("T")

MOST_WORDS: Final = 7
MAX_QUOTE: Final = 80
MAX_TOPIC: Final = 90
FEWEST_WORDS: Final = 3
#: The number of turns in a collaboration after which an agent declares the work done.
ENOUGH_ROUNDS: Final = 3

_CLAUSE: Final = re.compile(r"[^.!?;:,\n\r\"“”`*_#>|\[\](){}]+")
_WORD: Final = re.compile(r"\S+")
_BLANK: Final = re.compile(r"\n[ \t]*\n")
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_MARKS: Final = re.compile(r"[`*_#<>\[\]\"“”]+")
_GREETING: Final = re.compile(
    r"\W*(?:hi|hello|hey|hallo|good (?:morning|day|evening)|greetings|welcome)\b", re.IGNORECASE
)
_THANKS: Final = re.compile(r"\W*(?:thanks|thank you|cheers|great work|well done)\b", re.IGNORECASE)
_CODE: Final = re.compile(r"\b(?:code|function|script|snippet|python)\b", re.IGNORECASE)
_LIST: Final = re.compile(r"\b(?:list|steps|plan|options|ideas)\b", re.IGNORECASE)
_SIDES: Final = re.compile(
    r"(?P<one>[^,.;:?!]{1,60}?) (?:or|vs\.?|versus) (?P<two>[^,.;:?!]{1,60})", re.IGNORECASE
)
_LEAD: Final = re.compile(
    r"\W*(?:shall|should|do|does|is|are|would|will|can|could|use|prefer|we|you|i|the|a|an|it|better|to|use|be|"
    r"whether|which|what|discuss|debate|decide|choose|between)\b[ \t]*",
    re.IGNORECASE,
)
_TRAIL: Final = re.compile(r" (?:in|for|on|at|of|with|when|if|as)\b", re.IGNORECASE)
#: Requests in a goal about when to end or how to format the reply.
_AT_ONCE: Final = re.compile(r"\bthen stop\b|\bin (?:1|one) sentence\b", re.IGNORECASE)
_ENDLESS: Final = re.compile(r"\bindefinitely\b|\bfor ?ever\b|\bwithout (?:an )?end\b", re.IGNORECASE)
_CAP: Final = re.compile(r"(?:≤|<=|at most|up to)\s*(?P<n>\d{1,3}) (?:rounds|turns|steps)\b", re.IGNORECASE)
_MALFORMED: Final = re.compile(r"\bmalformed json\b", re.IGNORECASE)
_JSON: Final = re.compile(r"\banswer in json\b", re.IGNORECASE)
_TIME: Final = re.compile(r"\btake your time\b", re.IGNORECASE)
_MODE: Final = re.compile(
    r"(?:please )?(?:start|set|run|begin) (?:an? |the )?(?:mode )?(?P<mode>[a-z_]{4,20}) "
    r'(?:on |about |of |for )?"(?P<topic>[^"\n\\]{1,200})"(?: in (?P<rounds>\d{1,2}) rounds)?[.!]?\Z',
    re.IGNORECASE,
)
_STATUS: Final = re.compile(r"(?:please )?(?:what is|show|ask for) the mode\b[^\n]{0,20}\Z", re.IGNORECASE)


def reply(persona_name: str, heard: DemoPrompt, turn_count: int) -> str:
    """Return a demo agent's reply to a prompt."""
    if heard.run is not None:
        return review_script.answer(heard.run)
    persona = PERSONAS[persona_name]
    if persona is CONDUCTOR and heard.kind in (Kind.POSITION, Kind.PROPOSAL, Kind.REBUTTAL):
        return _synthesis(persona, heard, turn_count)
    if heard.is_turn and _TIME.search(heard.topic):
        return f"@working on turn {turn_count + 1} of mine, taking my time"
    return _ANSWERS.get(heard.kind, _talk)(persona, heard, turn_count)


# --- choosing ------------------------------------------------------------------------------------


def _number(*seed: object) -> int:
    """Return the same number for the same words in every process."""
    return zlib.crc32("\x1f".join(map(str, seed)).encode("utf-8", "replace")) ^ 0x5BD1E995


def _pick(choices: Sequence[T], *seed: object) -> T:
    return choices[_number(*seed) % len(choices)]


def quote(text: str, *seed: object, among: int = 4) -> str:
    """Return a few consecutive words from `text`, at least three if it has that many.

    They come from one of the first `among` clauses.
    """
    first_paragraph = _BLANK.split(text.strip(), maxsplit=1)[0]
    spoken = _CONTROLS.sub("\n", first_paragraph)
    clauses = [clause.strip(" \t-'’") for clause in _CLAUSE.findall(spoken)]
    long_enough = [clause for clause in clauses if len(clause.split()) >= FEWEST_WORDS]
    if long_enough:
        return _shortened(_pick(long_enough[:among], "clause", *seed))
    whole = spoken.strip().rstrip(".!?,;:")
    if whole and not _MARKS.search(whole) and "\n" not in whole:
        return _shortened(whole)
    return _shortened(max(clauses, key=len, default="")) or "nothing at all"


def _shortened(clause: str) -> str:
    """Return the first words of a clause unchanged."""
    words = list(_WORD.finditer(clause))
    chosen = words[:MOST_WORDS]
    while len(chosen) > FEWEST_WORDS and chosen[-1].end() > MAX_QUOTE:
        chosen.pop()
    return clause[chosen[0].start() : chosen[-1].end()] if chosen else ""


def _topic(heard: DemoPrompt) -> str:
    """Return the topic as part of a sentence."""
    plain = " ".join(_MARKS.sub("", _CONTROLS.sub(" ", heard.topic)).split()).rstrip(".?!:;,")
    if len(plain) > MAX_TOPIC:
        plain = plain[:MAX_TOPIC].rpartition(" ")[0] + " …"
    return f'"{plain}"' if plain else "this"


def _sides(persona: Persona, heard: DemoPrompt) -> tuple[str, str]:
    """Return the sides that this agent is for and against: those in the topic, or else two general ones."""
    found = _SIDES.search(_topic(heard).strip('"'))
    if not found:
        sides = ["the simple way", "the thorough way"]
    else:
        sides = [_side(found["one"], last=True), _side(found["two"], last=False)]
    ranked = sorted(sides, key=lambda side: _number(persona.name, side, *sorted(sides)))
    return ranked[0], ranked[1]


def _side(words: str, *, last: bool) -> str:
    """Return at most three words of a side in the topic, without the introductory words."""
    plain = words.strip()
    while (lead := _LEAD.match(plain)) and lead.end() < len(plain):
        plain = plain[lead.end() :]
    parts = _TRAIL.split(plain)[0].split() or plain.split()
    return " ".join(parts[-3:] if last else parts[:3]) or "it"


def _fill(phrase: str, persona: Persona, heard: DemoPrompt, *, quoted: str = "", name: str = "") -> str:
    side, other = _sides(persona, heard)
    return phrase.format(side=side, other=other, topic=_topic(heard), quote=quoted, name=name)


# --- one reply for each kind of prompt -----------------------------------------------------------


def _talk(persona: Persona, heard: DemoPrompt, turn: int) -> str:
    if heard.text.startswith("[CSP:"):
        # A digest or a response from the room, not a participant's text.
        return "NOOP"
    if persona is CONDUCTOR and heard.sender == "human" and (command := _mode_command(heard.text)):
        return command
    quoted = quote(heard.text, persona.name, heard.text)
    to = f"{heard.sender}: " if heard.sender not in ("", "human") else ""
    if _GREETING.match(heard.text):
        words = heard.text.split()
        more = f' You say "{quoted}", so I am listening.' if len(words) > 2 else ""
        return f"{to}{_pick(persona.greetings, heard.text, turn)}{more}"
    if _THANKS.match(heard.text):
        return f'{to}You are welcome. I keep "{quoted}" as a compliment.'
    phrases = persona.opinions if "?" in heard.text else persona.remarks
    said = f"{to}{_pick(phrases, persona.name, heard.text).format(quote=quoted)}"
    # Add a short code block or list if the prompt suggests it.
    if persona is not CONDUCTOR and _CODE.search(heard.text):
        name = "_".join(re.findall(r"[a-z0-9]+", quoted.lower())[:4]) or "it"
        body = f"    return {len(heard.text.split())}  # words in your message"
        said += f"\n\nA sketch, as I am only a script:\n\n```python\ndef about_{name}() -> int:\n{body}\n```"
    elif persona is not CONDUCTOR and (
        _LIST.search(heard.text) or (not persona.is_brief and _number("extra", heard.text) % 3 == 0)
    ):
        said += "\n\nMy points:\n\n" + "\n".join(f"- {reason}" for reason in _reasons(persona, heard, 3))
    return said


def _mode_command(text: str) -> str:
    """Return the command for a request to an orchestrator to set or show the mode, or an empty string."""
    found = _MODE.match(text.strip())
    if found:
        rounds = f" --rounds {found['rounds']}" if found["rounds"] else ""
        return f'@mode.set {found["mode"].lower()} "{found["topic"]}"{rounds}'
    return "@mode.status" if _STATUS.match(text.strip()) else ""


def _reasons(persona: Persona, heard: DemoPrompt, count: int) -> list[str]:
    ranked = sorted(persona.reasons, key=lambda reason: _number(persona.name, reason, heard.topic))
    return ranked[:count]


def _position(persona: Persona, heard: DemoPrompt, turn: int) -> str:
    opening = _fill(_pick(persona.positions, heard.topic), persona, heard)
    _, other = _sides(persona, heard)
    reasons = _reasons(persona, heard, 1 if persona.is_brief else 2)
    if persona.is_brief:
        return f"{opening} On {_topic(heard)} there is one reason that counts: {reasons[0]}."
    listed = "\n".join(f"{number}. {reason}" for number, reason in enumerate(reasons, start=1))
    return f"{opening} On {_topic(heard)}, against {other}:\n\n{listed}"


def _rebuttal(persona: Persona, heard: DemoPrompt, turn: int) -> str:
    speakers = _latest(heard.theirs)
    chosen = _pick(speakers, persona.name, heard.text)
    phrase = _pick(persona.rebuttals, persona.name, chosen.text, heard.round)
    words = _words_of(chosen.text, heard, persona.name, chosen.text)
    said = [_fill(phrase, persona, heard, quoted=words, name=chosen.name)]
    others = [one for one in speakers if one is not chosen]
    if others and not persona.is_brief:
        also = _pick(others, persona.name, heard.topic, heard.round)
        words = _words_of(also.text, heard, persona.name, also.text)
        said.append(f'And {also.name}, your "{words}" I grant you half.')
    reason = _pick(persona.reasons, heard.text, turn)
    return f"{' '.join(said)}\n\nWhat stands: {reason}."


def _words_of(text: str, heard: DemoPrompt, *seed: object, among: int = 4) -> str:
    """Return some of a speaker's words, excluding the topic."""
    return quote(text.replace(_topic(heard), "\n"), *seed, among=among)


def _latest(said: Sequence[Said]) -> list[Said]:
    """Return each agent's last message; people's messages count only if no agent has posted one."""
    last: dict[str, Said] = {}
    for one in said:
        last.pop(one.name, None)
        last[one.name] = one
    agents = [one for name, one in last.items() if name != "human"]
    return agents or list(last.values())


def _proposal(persona: Persona, heard: DemoPrompt, turn: int) -> str:
    phrase = _pick(persona.proposals, persona.name, heard.topic)
    reason = _reasons(persona, heard, 1)[0]
    return f"{_fill(phrase, persona, heard)} Why: {reason}."


def _vote(persona: Persona, heard: DemoPrompt, turn: int) -> str:
    def liking(option: tuple[str, str]) -> tuple[bool, int, int]:
        """Return how much an agent likes a text, regardless of its position; its own text scores lowest."""
        words = set(re.findall(r"\w+", option[1].lower()))
        is_own = any(reason in option[1] for reason in persona.reasons)
        return not is_own, sum(word in words for word in persona.likes), _number(persona.name, option[1])

    label, text = max(heard.options, key=liking)
    words = f'"{_words_of(text, heard, among=1)}": {_pick(persona.verdicts, text)}' if text else ""
    return f"VOTE: [{label}]\nREASON: {words or 'it is as good as any'}."


def _work(persona: Persona, heard: DemoPrompt, turn: int) -> str:
    """Return a step of joint work and the agent that continues; each step has different wording."""
    number = heard.round if heard.round is not None else turn + 1
    step = _pick(persona.steps, heard.text, turn)
    last = _latest(heard.theirs)[-1:]
    built = (
        f' {last[0].name} said "{_words_of(last[0].text, heard, among=1)}", so I began there.' if last else ""
    )
    if heard.task:
        built = f' The task was "{_words_of(heard.task, heard, among=1)}".{built}'
    said = f"{step}. This is step {number}, turn {turn + 1} of mine, on {_topic(heard)}.{built}"
    command = _next(persona, heard, turn, number)
    if _MALFORMED.search(heard.topic):
        return json.dumps({"message": said, "handoff": {"to": getattr(command, "to", "nobody")}})
    if not _JSON.search(heard.topic):
        line = f"@handoff.{command.to} {command.task}" if isinstance(command, HandOver) else "@final"
        return f"{said}\n\n{line}" if command else said
    envelope: dict[str, object] = {"message": said}
    if isinstance(command, HandOver):
        envelope["handoff"] = {"to": command.to, "task": command.task}
    if isinstance(command, Finish):
        envelope["final"] = True
    return json.dumps(envelope, ensure_ascii=False)


def _next(persona: Persona, heard: DemoPrompt, turn: int, number: int) -> HandOver | Finish | None:
    """Return the command that ends the work or selects the next agent, or None."""
    cap = _CAP.search(heard.topic)
    caps = [] if heard.last_round is None else [heard.last_round]
    caps += [int(cap["n"])] if cap else []
    if _AT_ONCE.search(heard.topic):
        is_done = True
    elif _ENDLESS.search(heard.topic) or heard.is_autopilot:
        is_done = False
    elif cap or (caps and number >= min(caps)):
        is_done = number >= min(caps)
    else:
        is_done = number >= ENOUGH_ROUNDS and _number("final", heard.text, turn) % 4 == 0
    if heard.can_finish and is_done:
        return Finish()
    is_free = heard.is_autopilot and _number("next", heard.text, turn) % 2
    if not heard.others or not heard.can_hand_over or is_free:
        return None
    to = _pick(heard.others, persona.name, heard.text, turn)
    return HandOver(to=to, task=_fill(_pick(persona.tasks, heard.text, turn), persona, heard))


def _lead(persona: Persona, heard: DemoPrompt, turn: int) -> str:
    """Hand the next task to an agent that has not reported yet; summarise once all have."""
    reported = {one.name for one in heard.theirs}
    idle = [name for name in heard.others if name not in reported]
    if not idle:
        return f"{_synthesis(persona, heard, turn)}\n\n@final"
    task = _fill(_pick(persona.tasks, heard.topic, turn), persona, heard)
    return f"{idle[0]} has not been heard yet.\n\n@handoff.{idle[0]} {task}"


def _synthesis(persona: Persona, heard: DemoPrompt, turn: int) -> str:
    speakers = list({one.name: one for one in heard.theirs}.values())
    if not speakers:
        return f"On {_topic(heard)} nobody has spoken yet; I wait for the first word."
    lines = "\n".join(f'- {one.name} holds "{_words_of(one.text, heard, among=1)}"' for one in speakers)
    side, _ = _sides(persona, heard)
    return (
        f"What I heard on {_topic(heard)}:\n\n{lines}\n\nIn short: {len(speakers)} voices, a lean to {side}."
    )


_ANSWERS: Final[dict[Kind, Callable[[Persona, DemoPrompt, int], str]]] = {
    Kind.TALK: _talk,
    Kind.POSITION: _position,
    Kind.PROPOSAL: _proposal,
    Kind.REBUTTAL: _rebuttal,
    Kind.VOTE: _vote,
    Kind.WORK: _work,
    Kind.LEAD: _lead,
    Kind.SYNTHESIS: _synthesis,
}
