"""Figures of the whiteboard's search: how well notes are found, how quickly among many.

python -m tests.bench.board [--notes N] [--json]
"""

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from csp.protocol.enums import AgentId
from csp.whiteboard.note_index import Filter
from csp.whiteboard.whiteboard import MeaningSearch, Whiteboard
from tests.whiteboard.labelled import Room, read_notes, read_queries, write_notes

_ROUNDS: Final = 3
_BATCH: Final = 5000


def no_meaning() -> MeaningSearch | None:
    """Search by words alone."""
    return None


def quality(folder: Path) -> dict[str, dict[str, float]]:
    """Return nDCG@10 of the tuned part, of what was held out, of all."""
    rooms = {
        "words": Room(folder / "words", no_meaning),
        "meaning": Room(folder / "meaning"),
        "rerank": Room(folder / "rerank", rerank=True),
    }
    found = {}
    for name, room in rooms.items():
        parts = {"tuned": False, "held out": True, "all": None}
        found[name] = {part: round(room.quality(is_held_out=held), 3) for part, held in parts.items()}
        room.close()
    return found


def many(folder: Path, count: int) -> dict[str, float]:
    """Return how long it takes to take in so many notes, in seconds; to find some, in milliseconds."""
    board, taken_s = _filled(folder, count)
    queries = [one.q for one in read_queries()]
    figures = {"notes": float(count), "taken in, s": round(taken_s, 1)}
    ways = {"search": (Filter(), False), "search of one author": (Filter(author="codex"), False)}
    ways["rerank"] = (Filter(), True)
    for name, (wanted, rerank) in ways.items():
        spent = []
        for q in queries * (1 if rerank else _ROUNDS):
            started = time.perf_counter()
            board.search(q, wanted, 10, None, rerank=rerank)
            spent.append((time.perf_counter() - started) * 1000)
        figures[f"{name}, p50"] = round(statistics.median(spent), 1)
        figures[f"{name}, p95"] = round(statistics.quantiles(spent, n=20)[-1], 1)
    return figures


def _filled(folder: Path, count: int) -> tuple[Whiteboard, float]:
    """Return a board with notes that are drawn from the words of the labelled ones."""
    draw = random.Random(7)
    texts = [text for _, _, text in read_notes()]
    words = [word for text in texts for word in text.split()]
    made = [
        (
            AgentId(draw.choice(("claude", "codex", "gemini"))),
            f"{draw.choice(texts)} {' '.join(draw.choices(words, k=draw.randint(5, 40)))} ref_{number:06x}",
        )
        for number in range(count)
    ]
    journal = write_notes(folder, made)
    board = Whiteboard(journal, lambda event, agent: True)
    started = time.perf_counter()
    while not board.catch_up(_BATCH):
        pass
    return board, time.perf_counter() - started


def main() -> int:
    parser = argparse.ArgumentParser(description="Figures of the whiteboard's search.")
    parser.add_argument("--notes", type=int, default=100_000)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        good, quick = quality(Path(place)), many(Path(place) / "many", args.notes)
    if args.json:
        print(json.dumps({"ndcg@10": good, "many": quick}))
        return 0
    for way, parts in good.items():
        print(f"{way:8}", "  ".join(f"{part} {value:.3f}" for part, value in parts.items()))
    for name, value in quick.items():
        print(f"{name:28} {value:g}")
    print("load", *(f"{one:.1f}" for one in os.getloadavg()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
