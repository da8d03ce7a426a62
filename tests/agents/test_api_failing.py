"""What a failed call means, at its edges; most of it is in test_api_parts.py."""

from csp.agents.api.call_errors import failure_of, scrubbed


class Failed(Exception):
    """An exception as an SDK raises it."""

    def __init__(self, status: int, body: object) -> None:
        super().__init__()
        self.status_code, self.body = status, body


def test_a_key_of_any_form_is_taken_out() -> None:
    assert scrubbed("the key hunter2 is wrong, hunter2!", "hunter2") == "the key [key] is wrong, [key]!"
    assert scrubbed("nothing is secret", "") == "nothing is secret"


def test_a_stream_that_broke_off_is_known_by_its_code_not_by_its_status() -> None:
    passing = failure_of(Failed(200, {"error": {"code": "server_error", "message": "later"}}), "", 0.0)
    final = failure_of(Failed(200, {"error": {"code": "bad_request", "message": "no"}}), "", 0.0)

    assert (passing.message, passing.is_passing) == ("the response broke off: later", True)
    assert (final.message, final.is_passing) == ("the response broke off: no", False)
