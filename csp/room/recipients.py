"""Find a message's recipients: one participant, several or all."""

from msgspec.structs import replace

from csp.errors import BadInput, NotFound
from csp.protocol.enums import ALL, HUMAN, AgentId
from csp.room import commands
from csp.room.agent_names import nearest
from csp.room.room_state import Room


def route(room: Room, command: commands.Send) -> tuple[AgentId, tuple[AgentId, ...]]:
    """Return a message's target and recipients; raise an error if nobody could receive it.

    Several names separated by commas form one target: each of them gets the same message.
    """
    target = AgentId(command.to.strip().lower())
    if "," in target:
        names = dict.fromkeys(word.strip() for word in target.split(",") if word.strip())
        routes = [route(room, replace(command, to=name)) for name in names]
        if not routes:
            raise BadInput(f"expected a recipient, got {command.to!r}", "name a participant, or 'all'")
        if any(to == ALL for to, _ in routes):
            return route(room, replace(command, to=ALL))
        named = AgentId(",".join(to for to, _ in routes))
        everybody = dict.fromkeys(agent for _, recipients in routes for agent in recipients)
        return named, tuple(agent for agent in everybody if command.only is None or agent in command.only)
    if target == ALL:
        # A participant that left must not collect all later messages to all. A resend names its recipients,
        # so it waits for them even if they are offline.
        return ALL, tuple(
            participant.id
            for participant in room.participants.values()
            if participant.id != command.sender
            and (participant.online if command.only is None else participant.id in command.only)
        )
    if target == command.sender:
        raise BadInput("you cannot send a message to yourself", "name another participant, or 'all'")
    if target == HUMAN:
        return HUMAN, ()
    if target not in room.participants:
        known = [*room.participants, "human", "all"]
        raise NotFound(f"unknown recipient {command.to!r}", nearest(command.to, known))
    return target, (target,)
