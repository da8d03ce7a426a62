"""addmodel.js: an API model is asked for with what was filled in."""

from typing import Final

from tests.web.modules import Parts

BEGIN: Final = """const { startAddModel } = await load("addmodel"); const room = await makeRoom();
startAddModel(room);
const dialog = $("#add-model"); const field = (name) => dialog.querySelector(`[name=${name}]`);
const submit = async () => { $("#add-model-form").requestSubmit();
const looks = () => [$("#add-model-start").disabled, $("#add-model-start").getAttribute("aria-busy")];
const busy = looks(); for (let i = 0; i < 4; i += 1) await turn();
return [busy, looks(), dialog.open]; };
"""
#: Whether the button is disabled, with what a screen reader is told of it.
BUSY: Final = [True, "true"]
READY: Final = [False, None]


async def test_a_model_is_asked_for_without_the_fields_that_are_empty(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """$("#add-model-open").click(); const isModal = dialog.matches(":modal");
        field("provider").value = "openai";
        field("model").value = " gpt-x "; field("name").value = "gpt";
        answers["/agents"] = { agentId: "gpt-2", id: "m-7" }; const done = await submit();
        return [isModal, asked, ids.length, done, texts(".toast p"), room.refreshed]"""
    )

    body = {"provider": "openai", "model": "gpt-x", "name": "gpt"}
    assert got == [True, [["POST", "/agents", body]], 1, [BUSY, READY, False], ["gpt-2 joined"], 1]


async def test_a_refusal_leaves_the_form_as_it_is(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """$("#add-model-open").click(); field("model").value = "m"; field("name").value = "n";
        statuses["/agents"] = 409; answers["/agents"] = { error: "no key", hint: "set it" };
        const done = await submit(); const body = asked[0][2];
        $("#add-model-cancel").click(); return [done, body, field("model").value, texts(".toast p"),
          dialog.open, room.refreshed]"""
    )

    body = {"provider": "anthropic", "model": "m", "name": "n"}
    assert got == [[BUSY, READY, True], body, "m", ["no key (set it)"], False, 0]


async def test_a_name_that_is_taken_is_said_at_its_field(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """room.agents = [{ id: "gpt", online: true }, { id: "old", online: false }];
        $("#add-model-open").click(); field("model").value = "m"; field("name").value = "GPT";
        await submit(); const taken = texts("#add-model .field-error"); const before = asked.length;
        field("name").value = "old"; await submit(); return [taken, before, asked.length]"""
    )

    assert got == [["", "gpt is already in the room. Enter another name."], 0, 1]


async def test_what_is_missing_is_said_at_its_field(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """$("#add-model-open").click(); await submit(); const both = texts("#add-model .field-error");
        const first = document.activeElement.name; field("model").value = "m"; await submit();
        return [both, first, texts("#add-model .field-error"), document.activeElement.name, asked]"""
    )

    assert got == [["Enter a model.", "Enter a name."], "model", ["", "Enter a name."], "name", []]
