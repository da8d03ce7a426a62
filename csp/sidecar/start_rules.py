"""The rules of the room, as a text that a CLI gets when it starts."""

from csp.prompt_files import read_prompt


def rules_text(agent: str, role: str = "agent", *, has_tools: bool = False) -> str:
    """Return the rules for one participant; those of the tools only for one who has them."""
    names = ["rules.md", *(["rules_tools.md"] if has_tools else [])]
    names += ["orchestrator.md"] if role == "orchestrator" else []
    return "\n".join([read_prompt(name) for name in names]).replace("{agent}", agent)
