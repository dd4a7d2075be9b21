"""A page in headless Chromium, driven by Playwright."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from helpers.browser import CHROMIUM

_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-crash-reporter")


@contextlib.contextmanager
def chromium(home: Path) -> Iterator[Any]:
    """A browser whose files are below `home`."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        variables = {**os.environ, "HOME": str(home), "TMPDIR": str(home), "XDG_CONFIG_HOME": str(home)}
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=list(_FLAGS), env=variables, downloads_path=str(home)
        )
        try:
            yield browser
        finally:
            browser.close()


class Page:
    """One page, and what went wrong in it."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(accept_downloads=True, **options)
        self.page = self.context.new_page()
        self.troubles: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.troubles.append(message.text))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)
