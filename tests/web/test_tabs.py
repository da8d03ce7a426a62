"""tabs.js and theme.js: which part is seen, in which colours."""

from tests.web.modules import Parts


async def test_a_tab_shows_its_part(parts: Parts) -> None:
    got = await parts.run(
        """const { startTabs, showTab, tabChanged } = await load("tabs"); const told = [];
        tabChanged.on((tab) => told.push(tab)); startTabs();
        const current = () => texts("#tabs [aria-current=page]");
        const first = [document.body.dataset.tab, current()];
        $("#tabs [data-tab=board]").click(); const second = [document.body.dataset.tab, current()];
        showTab("agents"); return [first, second, current(), told]"""
    )

    assert got == [["chat", ["Chat"]], ["board", ["Board"]], ["Agents"], ["chat", "board", "agents"]]


async def test_the_colours_are_kept(parts: Parts) -> None:
    got = await parts.run(
        """const { startTheme } = await load("theme");
        const theme = () => document.documentElement.dataset.theme; startTheme(); const first = theme();
        $("#theme").value = "dark"; $("#theme").dispatchEvent(new Event("change"));
        const chosen = [theme(), localStorage.getItem("csp-theme")];
        $("#theme").value = "auto"; document.documentElement.dataset.theme = ""; startTheme();
        return [first, chosen, theme(), $("#theme").value]"""
    )

    assert got == ["auto", ["dark", "dark"], "dark", "dark"]
