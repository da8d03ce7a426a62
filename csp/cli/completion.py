"""Print completion scripts generated from the table of verbs."""

from csp.cli.arguments import GLOBAL, Arg, takes, value
from csp.cli.output import put
from csp.cli.verb_call import VerbCall
from csp.cli.verbs import VERBS, Verb
from csp.room.sessions.modes import mode_names

_BASH = """\
_csp() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} verb= i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${{COMP_WORDS[i]}} in
            --room) ((i++)) ;;
            -*) ;;
            *) verb=${{COMP_WORDS[i]}}; break ;;
        esac
    done
    case $verb in
        "") COMPREPLY=($(compgen -W "{verbs}" -- "$cur")) ;;
{cases}
    esac
}}
complete -o default -F _csp csp"""

_ZSH = """\
#compdef csp
_csp() {{
    local -a verbs=(
{verbs}
    )
    local verb= i
    for ((i = 2; i < CURRENT; i++)); do
        case $words[i] in
            --room) ((i++)) ;;
            -*) ;;
            *) verb=$words[i]; break ;;
        esac
    done
    case $verb in
        "") _describe verb verbs ;;
{cases}
        *) _files ;;
    esac
}}
if [ "$funcstack[1]" = _csp ]; then
    _csp "$@"
else
    compdef _csp csp
fi"""


@takes(
    value("shell", "SHELL", "bash, zsh or fish", choices=("bash", "zsh", "fish")),
    examples=("csp completion bash > ~/.local/share/bash-completion/completions/csp",),
)
def completion(call: VerbCall) -> int:
    """Print the script for one shell."""
    put({"bash": bash, "zsh": zsh, "fish": fish}[call.args.shell]())
    return 0


def bash() -> str:
    """Return the script for bash."""
    verbs = " ".join([*(verb.name for verb in VERBS), "--help", "--version", *_flags(GLOBAL)])
    cases = [f'        {v.name}) COMPREPLY=($(compgen -W "{_words(v)}" -- "$cur")) ;;' for v in VERBS]
    return _BASH.format(verbs=verbs, cases="\n".join(cases))


def zsh() -> str:
    """Return the script for zsh."""
    verbs = "\n".join(f"        {_quoted(f'{verb.name}:{verb.help}')}" for verb in VERBS)
    cases = [f"        {verb.name}) compadd -- {_words(verb)}; _files ;;" for verb in VERBS]
    return _ZSH.format(verbs=verbs, cases="\n".join(cases))


def fish() -> str:
    """Return the script for fish."""
    lines = []
    for verb in VERBS:
        seen = f"complete -c csp -n '__fish_seen_subcommand_from {verb.name}'"
        lines.append(f"complete -c csp -n __fish_use_subcommand -a {verb.name} -d {_quoted(verb.help)}")
        for arg in (*verb.load().args, *GLOBAL):
            if arg.name.startswith("--"):
                needs = " -r" if "metavar" in arg.options else ""
                lines.append(f"{seen} -l {arg.name[2:]}{needs} -d {_quoted(arg.help)}")
            elif "choices" in arg.options:
                lines.append(f"{seen} -a {_quoted(' '.join(arg.options['choices']))}")
        if verb.name == "mode":
            lines.append(f"{seen} -a {_quoted(' '.join(mode_names()))}")
    return "\n".join(lines)


def _words(verb: Verb) -> str:
    args = verb.load().args
    choices = [str(word) for arg in args for word in arg.options.get("choices", ())]
    if verb.name == "mode":
        choices += mode_names()
    return " ".join([*choices, *_flags(args), *_flags(GLOBAL), "--help"])


def _flags(args: tuple[Arg, ...]) -> list[str]:
    return [arg.name for arg in args if arg.name.startswith("--")]


def _quoted(text: str) -> str:
    """Return text in single quotes for both zsh and fish, which escape a quote differently."""
    return "'" + text.replace("'", "’") + "'"
