"""The tests of the model in plain numpy against what is published of it."""

from pathlib import Path

import numpy as np
import pytest

from csp.errors import Broken
from csp.whiteboard import minilm_weights
from csp.whiteboard.minilm import DIMENSIONS, MiniLM, gelu
from csp.whiteboard.semantic_search import load_model

#: The example on the page of the model at its publisher, with the similarities given there.
SENTENCES = [
    "That is a happy person",
    "That is a happy dog",
    "That is a very happy person",
    "Today is a sunny day",
]
PUBLISHED = [1.0, 0.695, 0.943, 0.257]


@pytest.fixture(scope="module")
def model() -> MiniLM:
    found = load_model()
    assert found is not None, "the extra [search] is not installed"
    return found


def test_similarities_are_those_that_were_published(model: MiniLM) -> None:
    vectors = model.read(SENTENCES)

    assert vectors @ vectors[0] == pytest.approx(PUBLISHED, abs=0.001)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(4), abs=1e-5)


def test_company_in_a_batch_changes_no_vector(model: MiniLM) -> None:
    alone = model.read([SENTENCES[0]])[0]
    among = model.read([SENTENCES[0], "word " * 100, ""])[0]

    assert alone == pytest.approx(among, abs=1e-5)


def test_static_vectors_know_words_of_like_meaning(model: MiniLM) -> None:
    asked, near, far = map(model.static, ("delete the folder", "remove a directory", "sing me a song"))

    assert asked @ near > 0.4 > 0.2 > asked @ far


@pytest.mark.parametrize("text", ["", "   ", "…", "\U0001f600", "x" * 5000])
def test_every_text_has_a_vector_of_length_one(model: MiniLM, text: str) -> None:
    vector = model.static(text)

    assert vector.shape == (DIMENSIONS,)
    assert float(vector @ vector) == pytest.approx(1.0, abs=1e-4)


def test_gelu_is_that_of_the_error_function() -> None:
    from math import erf, sqrt

    values = np.linspace(-5, 5, 101, dtype=np.float32)
    exact = [float(x) * 0.5 * (1 + erf(float(x) / sqrt(2))) for x in values]

    assert gelu(values) == pytest.approx(exact, abs=1e-6)


def test_files_that_were_changed_are_not_used(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("[UNK]")

    with pytest.raises(Broken, match="checksum"):
        minilm_weights.check(path, minilm_weights.CHECKSUMS["vocab.txt"])
    with pytest.raises(Broken, match="cannot read"):
        minilm_weights.check(tmp_path / "none", "")


def test_without_the_package_there_is_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm_weights, "PACKAGE", "no-such-package-as-this")

    assert minilm_weights.find_files() is None


def test_code_of_the_package_is_never_run(model: MiniLM) -> None:
    import sys

    assert model
    assert not [name for name in sys.modules if name.startswith("pyduck")]
