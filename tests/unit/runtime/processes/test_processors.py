"""The processors of a container are those of its control groups, of both versions."""

from __future__ import annotations

import os

import pytest

from keelman.runtime.processes.processors import LEAST, processor_time, processors, quotas

V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = (
    "31 23 0:27 /docker/a /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
    "32 23 0:28 /docker/a /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
    "33 23 0:29 / /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n"
)
MOUNTS, GROUPS = "/proc/self/mountinfo", "/proc/self/cgroup"


def found(files: dict[str, str]) -> list[float]:
    def read(file: str) -> str:
        if file not in files:
            raise FileNotFoundError(file)
        return files[file]

    return list(quotas(read))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({MOUNTS: V2, GROUPS: "0::/\n", "/sys/fs/cgroup/cpu.max": "150000 100000\n"}, [1.5]),
        ({MOUNTS: V2, GROUPS: "0::/\n", "/sys/fs/cgroup/cpu.max": "max 100000\n"}, []),
        (
            {
                MOUNTS: V2,
                GROUPS: "1:name=systemd:/x\n0::/pod/c\n",
                "/sys/fs/cgroup/pod/c/cpu.max": "400000 100000",
                "/sys/fs/cgroup/pod/cpu.max": "200000 100000",
            },
            [4.0, 2.0],
        ),
        (
            {
                MOUNTS: V1,
                GROUPS: "5:memory:/docker/a\n4:cpu,cpuacct:/docker/a/b\n",
                "/sys/fs/cgroup/cpu,cpuacct/b/cpu.cfs_quota_us": "-1",
                "/sys/fs/cgroup/cpu,cpuacct/b/cpu.cfs_period_us": "100000",
                "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000",
                "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
            },
            [0.5],
        ),
        ({MOUNTS: V2, GROUPS: "0::/../other\n", "/sys/fs/cgroup/cpu.max": "100000 100000"}, []),
        ({MOUNTS: "broken\n", GROUPS: ""}, []),
        ({}, []),
    ],
    ids=["v2", "v2-no-quota", "v2-parent", "v1-container", "outside", "broken", "no-proc"],
)
def test_quotas_of_both_versions(files: dict[str, str], expected: list[float]) -> None:
    assert found(files) == expected


def test_the_least_of_affinity_and_quotas_counts() -> None:
    files = {MOUNTS: V2, GROUPS: "0::/\n", "/sys/fs/cgroup/cpu.max": "25000 100000"}
    assert processor_time(files.__getitem__) == 0.25
    files["/sys/fs/cgroup/cpu.max"] = "0 100000"
    assert processor_time(files.__getitem__) == LEAST, "one may divide by it"
    files["/sys/fs/cgroup/cpu.max"] = "100000000 100000"
    assert processor_time(files.__getitem__) == len(os.sched_getaffinity(0))
    assert 1 <= processors() <= len(os.sched_getaffinity(0))
