"""Joins the parts of the page into one HTML document that loads nothing, with a policy that allows nothing else."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

_HERE = Path(__file__).parent
SCRIPTS = ("service.js", "tabs.js", "typing.js", "csv.js", "scoring.js", "facts.js")  # in the order they run


def page_with_policy() -> tuple[bytes, str]:
    """The document, and the value of its Content-Security-Policy header.

    The policy names the hashes of the page's own style and script, so the browser applies and runs no other, and it
    allows requests to the service alone.
    """
    style = (_HERE / "style.css").read_text("utf-8")
    script = '"use strict";\n' + "\n".join((_HERE / name).read_text("utf-8") for name in SCRIPTS)
    page = (_HERE / "index.html").read_text("utf-8").replace("/*STYLE*/", style).replace("/*SCRIPT*/", script)
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return page.encode("utf-8"), policy


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode()}'"
