"""The adapter for programs that write a transcript in our own format, such as the demo agents."""

import os

from csp.clis.adapter import CliAdapter, Wired

TYPE_CHECKING = False
if TYPE_CHECKING:
    from csp.clis.adapter import CliRun
    from csp.clis.plain.transcript import PlainReader


class PlainAdapter(CliAdapter):
    """Any program that appends to the file named in CSP_TRANSCRIPT; see `csp.clis.plain.transcript`."""

    knows_transcript = True

    def wire(self, run: "CliRun") -> Wired:
        transcript = os.path.join(run.folder, "transcript.jsonl")
        env = {**run.env, "CSP_TRANSCRIPT": transcript}
        return Wired(argv=run.argv, env=env, transcript_hint=transcript, spool_dir=run.spool)

    def new_reader(self, since: float, session_id: str, path: str) -> "PlainReader":
        from csp.clis.plain.transcript import PlainReader

        return PlainReader(since, session_id, path)


ADAPTER = PlainAdapter()
