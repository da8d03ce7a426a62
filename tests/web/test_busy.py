"""busy.js: who is at work right now."""

from tests.web.modules import Parts


async def test_who_works_is_shown_with_a_models_words(parts: Parts) -> None:
    got = await parts.run(
        """const { Busy } = await load("busy"); const watched = []; const room = await makeRoom();
        Object.assign(room, { watch: (id) => watched.push(`+${id}`),
          unwatch: (id) => watched.push(`-${id}`) }); new Busy(room);
        const show = (...agents) => { room.agents = agents.map(([id, state, kind]) => ({ id, state,
          kind })); room.agentsChanged.tell(); return texts("#busy li"); };
        const live = (agent, ...lines) => room.live.tell({ agent,
          screen: { rows: lines.map((text) => [[text]]) } });
        const both = show(["ada", "busy", "api"], ["bob", "busy", "cli"], ["cy", "idle", "api"]);
        live("ada", "one", "two", " ", "three", "four"); live("bob", "secret"); live("cy", "nothing");
        room.live.tell({ agent: "ada" });
        const words = texts("#busy li"); Object.defineProperty(document, "hidden",
          { get: () => window.isAway, configurable: true });
        window.isAway = true; document.dispatchEvent(new Event("visibilitychange"));
        const away = texts("#busy li"); window.isAway = false;
        document.dispatchEvent(new Event("visibilitychange")); const back = texts("#busy li").length;
        return [both, words, away, back, show(["ada", "idle", "api"]), watched]"""
    )

    assert got == [
        ["ada is working ", "bob is working "],
        ["ada is working two ⏎ three ⏎ four", "bob is working "],
        [],
        2,
        [],
        ["+ada", "-ada", "+ada", "-ada"],
    ]
