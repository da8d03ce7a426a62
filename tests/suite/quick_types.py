"""Check the types of csp and tests without reading the inside of the model vendors' packages.

anthropic and openai have 5,000 modules, five times as many as CSP; two modules of CSP use them. They take a
third of mypy's time, so only `./bin/test --full` reads them.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent.parent
VENDORS: Final = """
[[tool.mypy.overrides]]
module = ["anthropic.*", "openai.*", "schemathesis.*"]
follow_imports = "skip"
"""


def main() -> int:
    with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as config:
        config.write((ROOT / "pyproject.toml").read_text("utf-8") + VENDORS)
        config.flush()
        # The cache of a full run must not be thrown away for this one, nor the other way round.
        cache = ROOT / ".mypy_cache/quick"
        words = ("-m", "mypy", "--config-file", config.name, "--cache-dir", str(cache))
        return subprocess.run([sys.executable, *words], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
