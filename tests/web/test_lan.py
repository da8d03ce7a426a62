"""The page over the network: with a certificate that the room has made itself."""

import base64
from hashlib import sha256
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from playwright.async_api import Error, async_playwright, expect

from csp.gateway.lan_certificate import certificate_folder, certificate_of
from tests.gateway.processes import Process, wait_for_room
from tests.web import browser as chromium

ADDRESS = "127.0.0.2"


def pin_of(room: Process) -> str:
    """Return what Chromium knows a certificate by, instead of trusting every one."""
    file = certificate_of(certificate_folder(room.env), ADDRESS).cert
    key = x509.load_pem_x509_certificate(file.read_bytes()).public_key()
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return base64.b64encode(sha256(key.public_bytes(serialization.Encoding.DER, form)).digest()).decode()


async def test_a_phone_enters_once_it_accepts_this_certificate(tmp_path: Path) -> None:
    with Process(tmp_path / "room", "--lan", ADDRESS) as room:
        url = wait_for_room(room.state_dir).lan
        link = url + str(room.gateway.post("/page/link", {})["path"])
        async with async_playwright() as playwright:
            strict = await chromium.launch(playwright)
            page = await (await chromium.new_context(strict)).new_page()
            with pytest.raises(Error, match="ERR_CERT_AUTHORITY_INVALID"):
                await page.goto(link)
            await strict.close()

            accepting = await chromium.launch(
                playwright, f"--ignore-certificate-errors-spki-list={pin_of(room)}"
            )
            context = await chromium.new_context(accepting)
            troubles = chromium.Troubles()
            troubles.listen(context)
            page = await context.new_page()
            await page.goto(link)
            await page.wait_for_selector(chromium.LIVE)
            room.gateway.post("/message", {"to": "all", "content": "hello phone"})
            await expect(page.get_by_text("hello phone")).to_be_visible()
            assert page.url == f"{url}/"
            assert troubles.unexpected == []
            await accepting.close()
