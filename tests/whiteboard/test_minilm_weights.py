"""The weights of the model out of files of a few numbers."""

import json
from hashlib import sha256
from pathlib import Path
from struct import pack

import pytest

from csp.errors import Broken
from csp.whiteboard import minilm_weights


def write_model(folder: Path) -> Path:
    head = {
        "__metadata__": {"format": "pt"},
        "a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
        "ids": {"dtype": "I64", "shape": [1], "data_offsets": [16, 24]},
        "b": {"dtype": "F32", "shape": [1], "data_offsets": [24, 28]},
    }
    text = json.dumps(head).encode()
    path = folder / "model.safetensors"
    path.write_bytes(pack("<Q", len(text)) + text + pack("<4fqf", 1, 2, 3, 4, 5, 6))
    return path


def test_tensors_are_read_by_their_place_and_shape(tmp_path: Path) -> None:
    found = minilm_weights.read_tensors(write_model(tmp_path))

    assert {name: tensor.tolist() for name, tensor in found.items()} == {"a": [[1, 2], [3, 4]], "b": [6]}


def test_both_files_are_checked_before_they_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"model.safetensors": write_model(tmp_path), "vocab.txt": tmp_path / "vocab.txt"}
    files["vocab.txt"].write_text("[UNK]\nü", "utf-8")
    sums = {name: sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    monkeypatch.setattr(minilm_weights, "CHECKSUMS", sums)
    loaded = minilm_weights.load(files)

    assert (set(loaded.tensors), loaded.vocabulary) == ({"a", "b"}, "[UNK]\nü")
    for name in files:
        monkeypatch.setattr(minilm_weights, "CHECKSUMS", sums | {name: "0" * 64})
        with pytest.raises(Broken, match=name):
            minilm_weights.load(files)


def test_a_file_that_is_missing_is_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Listed:
        name = "vocab.txt"

        def locate(self) -> Path:
            return tmp_path / "vocab.txt"

    (tmp_path / "vocab.txt").write_text("")
    monkeypatch.setattr("csp.whiteboard.minilm_weights.metadata.files", lambda package: [Listed()])

    assert minilm_weights.find_files() is None
    monkeypatch.setattr(minilm_weights, "CHECKSUMS", {"vocab.txt": ""})
    assert minilm_weights.find_files() == {"vocab.txt": tmp_path / "vocab.txt"}
    (tmp_path / "vocab.txt").unlink()
    assert minilm_weights.find_files() is None
