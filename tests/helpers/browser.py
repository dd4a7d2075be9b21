"""Open a local file in headless Chromium; return the rendered document and every request of the page."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from helpers.processes import kill_group

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-crash-reporter",
    "--disable-dev-shm-usage",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # the browser's own requests stay on this machine too
)


def browse(page: Path, width: int = 1280, timeout: float = 90.0) -> tuple[str, list[str]]:
    """Open `page`; return the document after its scripts ran, and the URLs that the page requested."""
    # A short path, because the browser creates a socket there and socket paths are limited to about 100 characters.
    with tempfile.TemporaryDirectory(prefix="b", ignore_cleanup_errors=True) as home:
        log = Path(home) / "net.json"
        own = [f"--user-data-dir={home}", f"--log-net-log={log}", f"--window-size={width},900", "--dump-dom"]
        document = _run([*own, page.resolve().as_uri()], home, timeout)
        return document, _requests(log)


def _run(options: list[str], home: str, timeout: float) -> str:
    assert CHROMIUM is not None
    process = subprocess.Popen(
        [CHROMIUM, *_FLAGS, *options],
        env={**os.environ, "HOME": home, "TMPDIR": home, "XDG_CONFIG_HOME": home},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with process:
        try:
            document, _ = process.communicate(timeout=timeout)
        finally:
            kill_group(process)
    assert process.returncode == 0, f"chromium ended with {process.returncode}"
    return document.decode("utf-8")


def _requests(log: Path) -> list[str]:
    """Return the URLs that the page requested; the browser's own requests have no origin as their initiator."""
    record: dict[str, Any] = json.loads(log.read_text("utf-8"))
    start = record["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"]
    jobs = [
        event["params"] for event in record["events"] if event["type"] == start and "url" in event.get("params", {})
    ]
    return [job["url"] for job in jobs if job.get("initiator") != "not an origin"]
