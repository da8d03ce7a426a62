"""addmodel.js: an API model is asked for with what was filled in."""

from typing import Final

from tests.web.modules import Parts

BEGIN: Final = """const { startAddModel } = await load("addmodel"); const room = await makeRoom();
startAddModel(room);
const dialog = $("#add-model"); const field = (name) => dialog.querySelector(`[name=${name}]`);
const submit = async () => { $("#add-model-form").requestSubmit();
const busy = $("#add-model-start").disabled; for (let i = 0; i < 4; i += 1) await turn();
return [busy, $("#add-model-start").disabled, dialog.open]; };
"""


async def test_a_model_is_asked_for_without_the_fields_that_are_empty(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """$("#add-model-open").click(); field("provider").value = "openai";
        field("model").value = " gpt-x "; field("name").value = "gpt";
        answers["/agents"] = { agentId: "gpt-2" }; const done = await submit();
        return [asked, done, texts(".toast p"), room.refreshed]"""
    )

    body = {"provider": "openai", "model": "gpt-x", "name": "gpt"}
    assert got == [[["POST", "/agents", body]], [True, False, False], ["gpt-2 joined"], 1]


async def test_a_refusal_leaves_the_form_as_it_is(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """$("#add-model-open").click(); field("model").value = "m"; field("name").value = "n";
        field("key_env").value = "MINE"; field("base_url").value = "http://h/";
        statuses["/agents"] = 409; answers["/agents"] = { error: "no key", hint: "set it" };
        const done = await submit(); const body = asked[0][2];
        $("#add-model-cancel").click(); return [done, body, field("model").value, texts(".toast p"),
          dialog.open, room.refreshed]"""
    )

    body = {"provider": "anthropic", "model": "m", "name": "n", "base_url": "http://h/", "key_env": "MINE"}
    assert got == [[True, False, True], body, "m", ["no key (set it)"], False, 0]
