"""Texts as vectors: with a vocabulary of five pieces, and with the installed weights."""

import json
import logging
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from csp.whiteboard import word_vectors as module
from csp.whiteboard.word_vectors import DIMENSIONS, WordVectors, load_word_vectors
from tests.long_texts import texts

WORDS = ["the", ".", "cat", "feline", "engine"]
#: Words come late in a vocabulary, where pieces are rare and heavy.
FIRST = 5000


class Tokenizer:
    """One piece per word that it knows."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def get_vocab(self) -> dict[str, int]:
        return {f"▁{word}": FIRST + number for number, word in enumerate(WORDS)} | {"beyond": 99_999}

    def encode(self, text: str, *, add_special_tokens: bool) -> Any:
        assert not add_special_tokens
        text.encode()
        self.texts.append(text)
        numbers = [FIRST + WORDS.index(word) for word in text.split() if word in WORDS]
        return SimpleNamespace(ids=[*numbers, *([99_999] if "beyond" in text else [])])


@pytest.fixture
def tokenizer() -> Tokenizer:
    return Tokenizer()


@pytest.fixture
def model(tokenizer: Tokenizer) -> WordVectors:
    vectors = np.zeros((FIRST + len(WORDS), 3), np.float32)
    vectors[FIRST:] = np.array([[0, 0, 1], [0, 0, 1], [1, 0, 0], [0.8, 0.6, 0], [0, 1, 0]])
    return WordVectors(tokenizer, vectors)


def test_a_text_has_a_vector_of_length_one(model: WordVectors) -> None:
    for text in ("cat", "cat engine", "the cat . .", "", "unknown", "\ud800 cat", "beyond cat"):
        assert np.linalg.norm(model.embed(text)) == pytest.approx(1.0, abs=1e-5)


def test_common_words_and_punctuation_weigh_little(model: WordVectors) -> None:
    common, sign = model.embed("the cat"), model.embed("cat .")

    assert 0 < sign[2] < common[2] < 0.3


def test_case_does_not_matter(model: WordVectors) -> None:
    assert (model.embed("CAT") == model.embed("cat")).all()


def test_only_the_beginning_of_a_long_text_is_read(
    model: WordVectors, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MAX_CHARACTERS", 4)
    model.embed("cat engine")

    assert tokenizer.texts == ["cat "]


def test_each_word_is_compared_with_the_most_similar_one(model: WordVectors) -> None:
    same, alike, other = model.compare("cat", ["cat", "engine feline", "engine"])
    whole = float(model.embed("engine feline") @ model.embed("cat"))

    assert same == pytest.approx(1.0, abs=1e-5)
    assert alike == pytest.approx(0.8 * 0.8 + 0.2 * whole, abs=1e-5)
    assert other == pytest.approx(0.0, abs=1e-5)


def test_light_words_are_compared_as_part_of_the_whole_text_alone(model: WordVectors) -> None:
    (near,) = model.compare(".", ["cat ."])

    assert near == pytest.approx(float(model.embed("cat .") @ model.embed(".")), abs=1e-5)


@pytest.mark.word_vectors
def test_installed_weights_know_what_words_mean() -> None:
    model = load_word_vectors()

    assert model is not None
    assert model.embed("a car").shape == (DIMENSIONS,)
    near, far = model.compare("an automobile broke down", ["the car has a flat tyre", "we baked bread"])
    assert near > far + 0.1


@pytest.mark.word_vectors
def test_weights_that_cannot_be_read_turn_the_search_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: object) -> object:
        raise Exception("expected value at line 1")

    monkeypatch.setattr(module, "_load_tokenizer", broken)

    with caplog.at_level(logging.WARNING):
        assert load_word_vectors.__wrapped__() is None
    assert "search by meaning is off" in caplog.text


@pytest.mark.word_vectors
def test_weights_of_another_type_turn_the_search_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    read_bytes = Path.read_bytes

    def other(path: Path) -> bytes:
        return read_bytes(path).replace(b'"F16"', b'"F32"', 1)

    monkeypatch.setattr(Path, "read_bytes", other)

    with caplog.at_level(logging.WARNING):
        assert load_word_vectors.__wrapped__() is None
    assert "search by meaning is off" in caplog.text


@pytest.mark.word_vectors
def test_pieces_and_vectors_are_those_of_the_package() -> None:
    # Importing wordllama configures the root logger, unless that has a handler.
    import wordllama

    theirs = wordllama.WordLlama.load(
        cache_dir=Path(wordllama.__file__).parent, dim=DIMENSIONS, disable_download=True
    )
    ours: Any = load_word_vectors.__wrapped__()

    assert (ours._vectors == theirs.embedding).all()
    for name, text in texts(300):
        clean = f"{text} <s> </s><unk> naïve 日本 \U0001f600".lower().encode(errors="replace").decode()
        known = theirs.tokenizer.encode(clean, add_special_tokens=False).ids
        assert ours._tokenizer.encode(clean, add_special_tokens=False).ids == known, name


@pytest.mark.word_vectors
def test_no_step_of_the_loading_reads_the_whole_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call into the tokenizers keeps all other threads waiting, for as long as its vocabulary is large."""
    import tokenizers

    path = next(Path(find_spec("wordllama").origin).parent.glob("tokenizers/*.json"))  # type: ignore[union-attr, arg-type]  # it is installed
    described = json.loads(path.read_bytes())["model"]
    sizes: list[tuple[int, int]] = []
    bpe: Any = tokenizers.models.BPE

    def make(vocab: dict[str, int], merges: list[tuple[str, str]], **options: Any) -> Any:
        sizes.append((len(vocab), len(merges)))
        return bpe(vocab=vocab, merges=merges, **options)

    class Tokenizer:
        """Reads a description, if that has no vocabulary."""

        @staticmethod
        def from_str(text: str) -> Any:
            model = json.loads(text)["model"]
            sizes.append((len(model["vocab"]), len(model["merges"])))
            return real.from_str(text)

    real = tokenizers.Tokenizer
    monkeypatch.setattr(tokenizers, "Tokenizer", Tokenizer)
    monkeypatch.setattr(tokenizers.models, "BPE", make)
    assert load_word_vectors.__wrapped__() is not None

    (before, after) = sizes
    assert before == (0, 0)
    assert after[0] < 0.8 * len(described["vocab"])
    assert after[1] < 0.8 * len(described["merges"])


@pytest.mark.word_vectors
def test_loading_imports_the_tokenizers_but_not_the_package_of_the_weights() -> None:
    code = "import sys; from csp.whiteboard.word_vectors import *; load_word_vectors(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert "tokenizers" in loaded.split()
    assert "wordllama" not in loaded.split()
