"""Rewrite expected.json on purpose, after a change that is meant to change results: `python tests/golden/record.py`.

Every part is computed twice: a result that differs between the two cannot be compared by a test, and is refused.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from golden.compute import EXPECTED, PARTS, differences, order, versions


def compute(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, part in PARTS.items():
        print(name, flush=True)
        found |= part(folder)
    return found


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="tenor-golden-") as folder:
        once, again = (compute(Path(folder) / turn) for turn in ("once", "again"))
    if lines := differences(once, again, "repeated"):
        sys.exit("\n".join(["not the same twice:", *lines]))
    before = EXPECTED.read_text("utf-8") if EXPECTED.exists() else ""
    EXPECTED.write_text(order({"versions": versions(), **once}), "utf-8")
    print(f"{EXPECTED}: {'as before' if EXPECTED.read_text('utf-8') == before else 'rewritten'}")


if __name__ == "__main__":
    main()
