"""How far the messages of the room have come."""

from csp.protocol.enums import DeliverKind
from csp.protocol.responses import Deliver
from csp.sidecar.inject.message_progress import KEPT, PASTES, MessageProgress, SentPrompt
from csp.terminal.prompt_builder import Prompt


def test_the_log_keeps_the_newest_messages_and_their_turns() -> None:
    progress = MessageProgress()
    assert KEPT == 500
    for seq in range(KEPT + 1):
        kind = DeliverKind.TURN if seq == KEPT else DeliverKind.MESSAGE
        progress.remember(
            Deliver(id=f"m{seq}", seq=seq, kind=kind, sender="h", text="", urgent=False, turn=f"t-{seq}")
        )
    progress.remember(Deliver(id="", seq=9999, kind=DeliverKind.MESSAGE, sender="csp", text="", urgent=False))

    assert progress.find("0") is None and progress.find("1") is None
    assert progress.find("2") == SentPrompt("m2", None)
    assert progress.find(f"t-{KEPT}") == SentPrompt(f"m{KEPT}", f"t-{KEPT}")
    assert progress.find("9999") is None and progress.find(None) is None


def test_the_proofs_that_are_kept_are_the_newest() -> None:
    progress = MessageProgress()
    for number in range(KEPT + 1):
        progress.prove(str(number))

    assert not progress.is_proven("0")
    assert progress.is_proven("1") and progress.is_proven(str(KEPT))


def test_a_proof_is_late_once_and_only_if_the_room_knows_the_message_as_unproven() -> None:
    progress = MessageProgress({"7": SentPrompt("m7", "t-7"), "8": SentPrompt("m8")})
    progress.note_submitted("7")

    late = [progress.prove(tag) for tag in ("7", "7", "8", "9")]

    assert late == [SentPrompt("m7", "t-7", is_unproven=True), None, None, None]
    assert progress.find("7") == SentPrompt("m7", "t-7", is_proven=True)
    assert progress.find("9") is None and progress.is_proven("9")


def test_nothing_is_typed_at_first() -> None:
    progress = MessageProgress()

    assert progress.typing is None and not progress.is_touching and not progress.is_at("t-1")


def test_the_last_pastes_are_known_by_their_line_breaks() -> None:
    progress = MessageProgress()
    for number in (*range(PASTES), 0, PASTES):
        text = "\n".join("x" * (number + 3))
        progress.note_pasted(Prompt(tag=str(number), header="", footer="", text=text), float(number))

    assert sorted(map(int, progress.pasted)) == [0, *range(2, PASTES + 1)]
    assert progress.pasted["2"].line_breaks == 4 and progress.pasted["2"].pasted_at == 2.0
