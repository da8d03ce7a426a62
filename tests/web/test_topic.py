"""topic.js: who is told of something; looking again when something has changed."""

from tests.web.modules import Parts


async def test_listeners_are_told_until_they_end(parts: Parts) -> None:
    heard = await parts.run(
        """const { Topic } = await load("topic"); const topic = new Topic(); const heard = [];
        const end = topic.on((value) => heard.push(`a${value}`));
        topic.on((value) => heard.push(`b${value}`));
        topic.tell(1); end(); topic.tell(2); return heard"""
    )

    assert heard == ["a1", "b1", "b2"]


async def test_a_looker_looks_at_once_and_once_more_for_all_that_changed_meanwhile(parts: Parts) -> None:
    looks = await parts.run(
        """const { Looker } = await load("topic"); let looks = 0; let go;
        const looker = new Looker(() => { looks += 1; return new Promise((done) => (go = done)); }, 1);
        const done = looker.wake(); const first = looks;
        looker.wake(); looker.wake(); const during = looks;
        go(); await until(() => looks === 2); go(); await done; const after = looks;
        const again = looker.wake(); go(); await again;
        return [first, during, after, looks]"""
    )

    assert looks == [1, 1, 2, 3]


async def test_a_looker_rests_between_two_looks(parts: Parts) -> None:
    rests = await parts.run(
        """const { Looker } = await load("topic"); const rests = [];
        const real = window.setTimeout;
        window.setTimeout = (run, ms) => { rests.push(ms); return real(run, 0); };
        const looker = new Looker(async () => {}, 250); await looker.wake();
        window.setTimeout = real; return rests"""
    )

    assert rests == [250]


async def test_a_looker_outlives_a_failure_and_ends_when_told(parts: Parts) -> None:
    looks = await parts.run(
        """const { Looker } = await load("topic"); let looks = 0;
        const looker = new Looker(async () => { looks += 1; throw new Error("gone"); }, 0);
        await looker.wake(); await looker.wake(); const before = looks;
        looker.end(); await looker.wake(); return [before, looks]"""
    )

    assert looks == [2, 2]
