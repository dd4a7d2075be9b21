"""Container limits are read from control group files with the layout of Linux."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tenor import cgroup, environment, memory

GIB = 2**30


def lay_out(tmp_path: Path, own: str, files: dict[str, str]) -> tuple[Path, Path]:
    """Write the files; return the folder of the groups and the file with the groups of this process."""
    for name, text in files.items():
        file = tmp_path / "fs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (tmp_path / "own").write_text(own)
    return tmp_path / "fs", tmp_path / "own"


def test_version_2_every_group_above_limits_memory(tmp_path: Path) -> None:
    place = lay_out(
        tmp_path,
        "0::/outer/inner\n",
        {
            "outer/inner/memory.max": "max\n",
            "outer/inner/memory.high": f"{6 * GIB}\n",
            "outer/inner/memory.current": f"{2 * GIB}\n",
            "outer/memory.max": f"{8 * GIB}\n",
            "outer/memory.high": "max\n",
            "outer/memory.current": f"{5 * GIB}\n",
        },
    )
    assert (
        cgroup.free_memory(*place) == 3 * GIB
    )  # limited by the outer group; the soft limit of the inner group leaves 4
    (tmp_path / "fs/outer/memory.max").write_text("max\n")
    assert cgroup.free_memory(*place) == 4 * GIB
    (tmp_path / "fs/outer/inner/memory.max").write_text(f"{GIB}\n")
    assert cgroup.free_memory(*place) == 0.0  # more is in use than allowed, so nothing is free


def test_version_2_as_a_container_sees_it(tmp_path: Path) -> None:
    files = {"memory.max": f"{4 * GIB}\n", "memory.high": "max\n", "memory.current": f"{GIB}\n"}
    place = lay_out(tmp_path, "0::/\n", {**files, "cpu.max": "50000 100000\n"})
    assert cgroup.free_memory(*place) == 3 * GIB
    assert cgroup.cpu_quota(*place) == 0.5


def test_version_1_has_a_group_for_each_controller(tmp_path: Path) -> None:
    files = {
        "memory/docker/7/memory.limit_in_bytes": f"{4 * GIB}\n",
        "memory/docker/7/memory.usage_in_bytes": f"{GIB}\n",
        "memory/docker/memory.limit_in_bytes": "9223372036854771712\n",
        "memory/docker/memory.usage_in_bytes": f"{GIB}\n",
        "cpu,cpuacct/docker/7/cpu.cfs_quota_us": "-1\n",
        "cpu,cpuacct/docker/7/cpu.cfs_period_us": "100000\n",
        "cpu,cpuacct/docker/cpu.cfs_quota_us": "250000\n",
        "cpu,cpuacct/docker/cpu.cfs_period_us": "100000\n",
        "pids/docker/7/cpu.cfs_quota_us": "1\n",
        "pids/docker/7/cpu.cfs_period_us": "100000\n",
    }
    own = "9:pids:/docker/7\n4:memory:/docker/7\n3:cpu,cpuacct:/docker/7\n1:name=systemd:/docker/7\n0::/docker/7\n"
    place = lay_out(tmp_path, own, files)
    assert cgroup.free_memory(*place) == 3 * GIB
    assert cgroup.cpu_quota(*place) == 2.5


def test_version_1_as_a_container_sees_it(tmp_path: Path) -> None:
    """The group has its name outside the container, but its files are at the root inside."""
    files = {"memory/memory.limit_in_bytes": f"{2 * GIB}\n", "memory/memory.usage_in_bytes": f"{GIB}\n"}
    files |= {"cpu/cpu.cfs_quota_us": "150000\n", "cpu/cpu.cfs_period_us": "100000\n"}
    place = lay_out(tmp_path, "4:memory:/docker/7\n3:cpu:/docker/7\n", files)
    assert (cgroup.free_memory(*place), cgroup.cpu_quota(*place)) == (GIB, 1.5)


@pytest.mark.parametrize("own", ["0::/gone\n", "0::/../beside\n", "2:memory:/\n0::/\n", ""])
def test_without_limits_the_result_is_infinite(tmp_path: Path, own: str) -> None:
    place = lay_out(tmp_path, own, {"memory.stat": "anon 0\n", "cpu.max": "max 100000\n"})
    assert cgroup.free_memory(*place) == cgroup.cpu_quota(*place) == math.inf
    assert cgroup.free_memory(place[0], tmp_path / "no system with groups") == math.inf


def test_cores_and_free_memory_respect_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = memory.free_bytes()
    assert machine > 2**20
    monkeypatch.setattr(cgroup, "free_memory", lambda: 2.0**20)
    assert memory.free_bytes() == 2**20
    monkeypatch.setattr(cgroup, "free_memory", lambda: math.inf)
    assert memory.free_bytes() > 2**20
    monkeypatch.setattr(cgroup, "cpu_quota", lambda: 0.2)
    assert environment.usable_cores() == 1
