"""Every preparation, in the folder of the inputs: `python -m golden.preparing`; prints the hashes as JSON."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from golden.cases import PREPARE
from golden.inputs import write_inputs


def hash_folder(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file, but for job.json, which holds times and paths."""
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file.name != "job.json")
    return {file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def main() -> None:
    import tenor

    write_inputs(Path())
    for name, (inputs, changes) in PREPARE.items():
        tenor.prepare(inputs, Path("prepared") / name, tenor.PrepareSettings(**{"workers": 1, **changes}))
    print(json.dumps({name: hash_folder(Path("prepared") / name) for name in PREPARE}))


if __name__ == "__main__":
    main()
