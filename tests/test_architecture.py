"""The rules of the house that a machine can check, each as one test."""

import ast
import builtins
import itertools
import re
import subprocess
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent
TOP_LEVEL: Final = {
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "pyproject.toml", "uv.lock"),
    *(".gitignore", ".ci", ".github", ".editorconfig", ".pre-commit-config.yaml"),
    *("bin", "csp", "docs", "examples", "history", "prompts", "tests"),
}

#: The pure packages: the rules of the room, and those of a terminal.
CORES: Final = {"room", "terminal"}

# Nothing here has a clock, does I/O or is random.
CORE_MAY_IMPORT: Final = {
    *(
        "__future__",
        "bisect",
        "collections",
        "dataclasses",
        "difflib",
        "enum",
        "functools",
        "hashlib",
        "heapq",
    ),
    *("itertools", "math", "msgspec", "re", "string", "types", "typing", "unicodedata"),
    # The one markdown parser: a text in, tokens out.
    "markdown_it",
}
# hash() differs from process to process, id() from run to run: neither may order anything.
CORE_MAY_NOT_CALL: Final = {
    *("__import__", "breakpoint", "eval", "exec", "hash", "id", "input", "open", "print"),
}

#: Reads the environment for csp.config, or for who cannot wait until that is loaded.
ENVIRONMENT: Final = "csp.fast_start.process_environment"
MAY_PRINT: Final = {"cli", "human"}
MAY_EXIT: Final = {"cli"}
HEAVY: Final = {"aiohttp", "markdown_it", "websockets", "msgspec", "sqlite3"}
MAX_MODULE_LINES: Final = 500
MAX_FUNCTION_LINES: Final = 80
#: One row for each setting, and what reads them.
MAY_BE_LONGER: Final = {"csp/config.py:1"}

#: Calls that start a program, with the place of the environment among their arguments; -1: only by name.
STARTS: Final = {
    *("subprocess.run", "subprocess.Popen", "subprocess.call", "subprocess.check_call"),
    *("subprocess.check_output", "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"),
}
EXECS: Final = {"os.execve": 2, "os.execvpe": 2, "os.posix_spawn": 2, "os.posix_spawnp": 2}
#: These take the environment as it is, or a shell line.
NEVER: Final = re.compile(
    r"os\.(exec[lv]p?|execlp?e|spawn\w+|system|popen)|pty\.spawn|subprocess\.get(status)?output"
)
MAKER: Final = "child_environment"
#: Not theirs to decide: `spawn` is handed what `launch` has made, `confined` has what `testing` has made for
#: it.
HANDED: Final = {"csp.sidecar.relay.pty_processes", "csp.review.confined_command"}

#: Names must be unique within each of these layers; every other entry of csp/ is a shell.
LAYERS: Final = {
    **dict.fromkeys(
        ("protocol", "errors", "config", "fast_start", "trust", "setting_types", "prompt_files"), "base"
    ),
    **dict.fromkeys(CORES, "cores"),
    "cli": "command line",
}
#: Names that two modules of a layer share, with the reason.
SHARED_NAMES: Final = {
    "Broadcast": "the fan-out of events in csp.gateway, the tool of that name in csp.mcp",
}

#: Words of the first drafts of this code. Each has a plainer one.
DIALECT: Final = re.compile(
    r"\b("
    r"whoever|whomever|anew|heed\w*|mend|mends|mended|mending|be it|for good|what becomes of|is told of"
    r"|are told of|come to nothing|came to nothing|comes to nothing|be they|whence|thereby|upon"
    r")\b",
    re.IGNORECASE,
)
# Written apart, so that this file does not trip over itself.
FOREIGN_PATH: Final = re.compile(rb"(?<![\w.])/(?:" + b"work|" + b"root)/")
UNFINISHED: Final = re.compile(rb"\b(?:" + b"TO" + b"DO|FIX" + b"ME|XX" + b"X)" + rb"\b")

# The sources are parsed once, in one worker.
pytestmark = pytest.mark.xdist_group("architecture")


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One parsed source file of csp."""

    name: str
    path: Path
    tree: ast.Module
    #: Every node of the tree, which many tests go through.
    nodes: tuple[ast.AST, ...]

    @property
    def part(self) -> str:
        """Name the entry of csp/ this module belongs to: `protocol`, `room`, `gateway`."""
        return [*self.name.split("."), "__init__"][1]

    def at(self, node: ast.expr | ast.stmt | int) -> str:
        line = node if isinstance(node, int) else node.lineno
        return f"{self.path.relative_to(ROOT)}:{line}"


@cache
def modules() -> tuple[Module, ...]:
    return tuple(_parsed(path) for path in sorted((ROOT / "csp").rglob("*.py")))


def _parsed(path: Path) -> Module:
    tree = ast.parse(path.read_text("utf-8"), str(path))
    return Module(name=_dotted(path), path=path, tree=tree, nodes=tuple(ast.walk(tree)))


def _dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(module: Module) -> Iterator[tuple[str, str]]:
    """Yield each imported name in full, with its place; `from csp import errors` gives csp.errors."""
    for node in module.nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, module.at(node)) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(module, node)
            yield from ((f"{origin}.{alias.name}", module.at(node)) for alias in node.names)


def _origin(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = module.name.split(".") + ["__init__"] * (module.path.name == "__init__.py")
    return ".".join(package[: -node.level] + ([node.module] if node.module else []))


def calls(module: Module) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls whose function is spelt as a plain or dotted name."""
    for node in module.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield spelt(node.func), node


def spelt(node: ast.AST) -> str:
    """Return a plain or dotted name as it is written; of anything else only that there is something."""
    if isinstance(node, ast.Attribute):
        return f"{spelt(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "()"


@cache
def project_files() -> dict[Path, bytes]:
    """Return every file that people write, but pictures, whose bytes spell anything."""
    paths = [*ROOT.glob("*.md")]
    for folder in ("csp", "tests", "prompts", "bin", "docs", "examples", ".github"):
        paths += [path for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts]
    return {path: path.read_bytes() for path in paths if path.is_file() and path.suffix != ".png"}


def places_of(pattern: re.Pattern[bytes]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]!r}"
        for path, data in project_files().items()
        if pattern.search(data)
        for number, line in enumerate(data.splitlines(), start=1)
        if pattern.search(line)
    ]


def test_imports_point_down() -> None:
    """The contracts are in pyproject.toml; `lint-imports` checks them on its own."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"]
    run = subprocess.run(
        [*command, "--no-logo", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert run.returncode == 0, run.stdout + run.stderr


def test_core_imports_nothing_with_a_clock_or_io() -> None:
    impure = [
        f"{place} imports {name}"
        for module in modules()
        if module.part in CORES
        for name, place in imports(module)
        if name.partition(".")[0] not in CORE_MAY_IMPORT | {"csp"}
    ]

    assert impure == []


def test_core_calls_no_builtin_that_does_io_or_varies() -> None:
    impure = [
        f"{module.at(call)} calls {name}"
        for module in modules()
        if module.part in CORES
        for name, call in calls(module)
        if name in CORE_MAY_NOT_CALL
    ]

    assert impure == []


def test_only_config_reads_the_environment() -> None:
    spellings = {"os.environ", "os.environb", "os.getenv", "os.getenvb", "os.putenv", "os.unsetenv"}
    readers = [
        module.at(node)
        for module in modules()
        if module.name != ENVIRONMENT
        for node in module.nodes
        if isinstance(node, ast.Attribute) and spelt(node) in spellings
    ]
    readers += [
        place
        for module in modules()
        if module.name != ENVIRONMENT
        for name, place in imports(module)
        if name in spellings
    ]

    assert readers == []


def _made_here(module: Module, env: ast.expr | None) -> bool:
    """Tell whether an environment was made by the one module that decides about it, or is empty."""
    if isinstance(env, ast.Name):
        assigned = [
            (target, node.value)
            for node in module.nodes
            if isinstance(node, ast.Assign)
            for target in node.targets
        ]
        pairs = [
            (name, value)
            for target, given in assigned
            for name, value in (
                zip(target.elts, given.elts, strict=True)
                if isinstance(target, ast.Tuple) and isinstance(given, ast.Tuple)
                else [(target, given)]
            )
        ]
        values = [value for name, value in pairs if isinstance(name, ast.Name) and name.id == env.id]
        return bool(values) and all(_made_here(module, value) for value in values)
    if isinstance(env, ast.Dict):
        return not env.keys
    return isinstance(env, ast.Call) and spelt(env.func) == MAKER


def test_every_process_is_started_with_an_environment_made_for_it() -> None:
    strays = []
    for module in modules():
        for name, call in calls(module):
            by_name = {keyword.arg: keyword.value for keyword in call.keywords}
            if name in STARTS:
                env = by_name.get("env")
            elif name in EXECS:
                env = by_name.get("env") or call.args[EXECS[name]]
            elif NEVER.fullmatch(name):
                env = None
            else:
                continue
            if module.name not in HANDED and not _made_here(module, env):
                strays.append(f"{module.at(call)} {name}")

    assert strays == []


def test_no_module_starts_programs_by_another_name() -> None:
    names = {"run", "Popen", "call", "check_call", "check_output", "create_subprocess_exec", "execve"}
    strays = [
        f"{place} imports {name}"
        for module in modules()
        for name, place in imports(module)
        if name.partition(".")[0] in {"subprocess", "asyncio", "os"} and name.rpartition(".")[2] in names
    ]

    assert strays == []


def test_our_own_programs_never_load_a_module_of_the_callers_directory() -> None:
    isolated = {"-P", "-I"}
    strays = [
        module.at(node)
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.List | ast.Tuple | ast.Call)
        for words in [node.args if isinstance(node, ast.Call) else node.elts]
        # What stands behind the path of an exec is the list of its words.
        if not (isinstance(node, ast.Call) and spelt(node.func) in EXECS)
        for one, after in itertools.pairwise(words)
        if spelt(one) == "sys.executable"
        and not (isinstance(after, ast.Constant) and after.value in isolated)
    ]

    assert strays == []


def test_only_the_command_line_prints() -> None:
    printers = [
        module.at(call)
        for module in modules()
        if module.part not in MAY_PRINT
        for name, call in calls(module)
        if name == "print"
    ]

    assert printers == []


def test_only_the_command_line_exits() -> None:
    exits = [
        module.at(node)
        for module in modules()
        if module.part not in MAY_EXIT
        for node in module.nodes
        if isinstance(node, ast.Name | ast.Attribute)
        and spelt(node) in {"sys.exit", "SystemExit", "exit", "quit"}
    ]
    exits += [
        place
        for module in modules()
        if module.part not in MAY_EXIT
        for name, place in imports(module)
        if name == "sys.exit"
    ]

    assert exits == []


def test_only_the_command_line_reads_argv() -> None:
    readers = [
        module.at(node)
        for module in modules()
        # `confined` is a program of its own.
        if module.part != "cli" and module.name != "csp.review.confined_command"
        for node in module.nodes
        if isinstance(node, ast.Attribute) and spelt(node) == "sys.argv"
    ]

    assert readers == []


def test_tests_serve_tcp_by_a_server_that_closes_its_connections() -> None:
    """A connection that outlives its event loop fails whichever test runs when it is collected."""
    allowed = {"tests/stream_server.py"}
    strays = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if str(path.relative_to(ROOT)) not in allowed
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if re.search(r"asyncio\.start_(unix_)?server\(", line)
    ]

    assert strays == []


def test_exceptions_are_defined_in_errors_alone() -> None:
    known = {
        name
        for name, value in vars(builtins).items()
        if isinstance(value, type) and issubclass(value, BaseException)
    }
    known |= {
        node.name
        for module in modules()
        if module.name == "csp.errors"
        for node in module.tree.body
        if isinstance(node, ast.ClassDef)
    }
    classes = [
        (module, node)
        for module in modules()
        if module.name != "csp.errors"
        for node in module.nodes
        if isinstance(node, ast.ClassDef)
    ]
    strays = [
        f"{module.at(node)} {node.name}"
        for module, node in classes
        for base in node.bases
        if ast.unparse(base).rpartition(".")[2] in known or ast.unparse(base).endswith(("Error", "Exception"))
    ]

    assert strays == []


def test_no_module_is_longer_than_500_lines() -> None:
    lengths = {module.at(1): len(module.path.read_text("utf-8").splitlines()) for module in modules()}
    too_long = {place: lines for place, lines in lengths.items() if lines > MAX_MODULE_LINES}
    too_long = {place: lines for place, lines in too_long.items() if place not in MAY_BE_LONGER}

    assert too_long == {}


def test_no_function_is_longer_than_80_lines() -> None:
    too_long = {
        f"{module.at(node)} {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > MAX_FUNCTION_LINES
    }

    assert too_long == {}


def _layer(module: Module) -> str:
    return LAYERS.get(module.part, "shells")


def test_no_name_of_a_module_occurs_twice_in_a_layer() -> None:
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for module in modules():
        # One __init__ or __main__ per package, and every CLI adapter has the same modules.
        if not module.path.stem.startswith("__") and module.part not in {"bench", "clis"}:
            places[_layer(module), module.path.stem].append(module.name)

    assert {names[1]: found for names, found in places.items() if len(found) > 1} == {}


def test_no_name_of_a_public_class_occurs_twice_in_a_layer() -> None:
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for module in modules():
        for node in module.tree.body if module.part != "bench" else ():
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[_layer(module), node.name].append(module.name)
    twice = {name: found for (_, name), found in places.items() if len(found) > 1}

    assert {name: found for name, found in twice.items() if name not in SHARED_NAMES} == {}
    assert set(SHARED_NAMES) - set(twice) == set()


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the comments, docstrings and other texts of a source file with their lines."""
    if path.suffix != ".py":
        yield from enumerate(path.read_text("utf-8").splitlines(), start=1)
        return
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type in (tokenize.COMMENT, tokenize.STRING):
                yield from enumerate(token.string.splitlines(), start=token.start[0])


def test_texts_are_in_plain_english() -> None:
    written = [path for path in (ROOT / "csp").rglob("*") if path.suffix in (".py", ".js", ".html", ".toml")]
    written += (ROOT / "docs").rglob("*.md")
    found = [
        f"{path.relative_to(ROOT)}:{number}: {word[0]!r} in {line.strip()[:80]!r}"
        for path in sorted(written)
        for number, line in _texts(path)
        for word in DIALECT.finditer(line)
    ]

    assert found == []


def test_every_module_has_a_docstring() -> None:
    assert [module.at(1) for module in modules() if not ast.get_docstring(module.tree)] == []


@pytest.mark.parametrize("name", ["csp.cli", "csp.http_client"])
def test_a_short_command_starts_without_heavy_imports(name: str) -> None:
    code = f"import sys, {name}; assert {name}.__file__; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr
    assert HEAVY & set(run.stdout.split()) == set()


def test_no_file_has_a_path_of_a_developers_machine() -> None:
    assert places_of(FOREIGN_PATH) == []


def test_no_file_has_a_mark_of_unfinished_work() -> None:
    assert places_of(UNFINISHED) == []


def test_the_top_level_has_only_the_entries_of_the_design() -> None:
    # An unpacked archive tracks nothing; a clone that git cannot read is a failure.
    is_clone = (ROOT / ".git").exists()
    command = ["git", "ls-files"] if is_clone else ["true"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    entries = {line.partition("/")[0] for line in run.stdout.splitlines()}

    assert run.returncode == 0, run.stderr
    assert entries - TOP_LEVEL == set()
