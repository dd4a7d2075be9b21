"""The file of a measurement: written and read again, and refused with one line if it is damaged."""

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.planned import measurement

from tenor.errors import UsageError
from tenor.planning.costs.noise_scale import NoiseScale
from tenor.planning.costs.touched_rows import LengthGroup, RowFrequencies, Spectrum
from tenor.planning.inputs.measurement import read_measurement, write_measurement


def full() -> Any:
    group = LengthGroup(100, 12.5, {"words": Spectrum((1, 2), (10, 5))})
    return measurement(frequencies=RowFrequencies((group,), group), noise_scale=NoiseScale(500.0, 300.0, 900.0, 50))


def test_a_measurement_survives_its_file(tmp_path: Path) -> None:
    file = tmp_path / "measured.json"
    write_measurement(full(), file)
    found = read_measurement(file)
    assert found == measurement(**{**vars(full()), "source": str(file)})


def damage(file: Path, path: str, value: Any) -> None:
    values = json.loads(file.read_text("utf-8"))
    *parents, last = path.split(".")
    place = values
    for name in parents:
        place = place[name]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    file.write_text(json.dumps(values), "utf-8")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("format", 7, "has format 7, but this version reads 1"),
        ("format", True, "has format True"),
        ("kind", "plan", "not a measurement"),
        ("measurement", ..., "cannot be read"),
        ("measurement.costs.compute.slope", "fast", "cannot be read"),
        ("measurement.costs.compute.slope", -1.0, "a cost is negative"),
        ("measurement.costs.noise", [], "relative compute times"),
        ("measurement.workers", 0, "workers is 0"),
        ("measurement.batch_size", 6.5, "cannot be read"),
        ("measurement.surprise", 1, "cannot be read"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, path: str, value: Any, message: str) -> None:
    file = tmp_path / "measured.json"
    write_measurement(full(), file)
    damage(file, path, value)
    with pytest.raises(UsageError, match=message) as error:
        read_measurement(file)
    assert str(file) in str(error.value) and error.value.remedy


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"format": NaN}'])
def test_something_else_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file.json").write_bytes(content)
    with pytest.raises(UsageError, match="not JSON"):
        read_measurement(tmp_path / "file.json")
    with pytest.raises(UsageError, match="cannot be read"):
        read_measurement(tmp_path / "missing.json")
