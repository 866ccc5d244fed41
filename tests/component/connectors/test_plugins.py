"""Third-party code in processes of its own: a plugin host, which may hang or die, and a process that uses a plugin."""

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import stat
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from keelman.connect.config.definition import REQUIRED
from keelman.connect.config.info import ConfigError, problems
from keelman.connect.errors import ConfigValueError, ConnectError, RetriableConnectError
from keelman.connect.plugin import Direction
from keelman.connectors.plugins import client as plugin_client
from keelman.connectors.plugins.client import Description, PluginHost
from keelman.model.errors import DeadlineExceeded, Unavailable
from support.eventually import eventually
from support.plugins.plugin_wheel import FULL

WORKER = {f"{role}.converter": "StringConverter" for role in ("key", "value")}


async def test_what_a_worker_asks(host: PluginHost, tmp_path: Path) -> None:
    assert await host.describe("WeatherSource") == Description(
        (FULL, "WeatherSourceConnector", "WeatherSource"), "1.4.0", Direction.SOURCE, "anywhere"
    )
    assert await host.supports_exactly_once(FULL, {"city": "Oslo"})
    assert not await host.supports_exactly_once(FULL, {"city": "Rome"})
    keys = (await host.config_def(FULL)).keys
    assert [(k.name, k.default) for k in keys.values()] == [("city", REQUIRED), ("days", 3)]
    config = {"name": "w", "connector.class": FULL, "days": "0"}
    assert problems(await host.validate(FULL, config, WORKER), config) == [
        ConfigError("city", None, 'Missing required configuration "city" which has no default value.'),
        ConfigError("days", "0", "Invalid value 0 for configuration days: Value must be at least 1"),
    ]
    tasks = await host.task_configs(FULL, {"city": "Oslo"}, 2)
    assert [(t["city"], t["n"]) for t in tasks] == [("Oslo", "0"), ("Oslo", "1")]
    assert await host.refresh_seconds(FULL, {}) == 7.5
    await host.tend(FULL, {"tended": str(tmp_path / "tended")})
    assert (tmp_path / "tended").read_text() == "tended\n"
    assert await host.tend_again(FULL, {"keeps": "2"}, tasks) is True
    assert await host.tend_again(FULL, {}, tasks) is False
    assert psutil.Process(int(tasks[0]["pid"])).ppid() == host.pid != os.getpid()
    assert "acme_weather" not in sys.modules


async def test_errors_keep_their_kind_and_name_plugin_class_and_method(host: PluginHost) -> None:
    where = rf"plugin acme-weather 1.4.0, {FULL}, task_configs: "
    with pytest.raises(ConnectError, match=where + "KeyError: 'whim'"):
        await host.task_configs(FULL, {"do": "raise"}, 1)
    with pytest.raises(RetriableConnectError, match=where + "the sky is away"):
        await host.task_configs(FULL, {"do": "retriable"}, 1)
    with pytest.raises(ConfigValueError, match=r"^Invalid value Atlantis for configuration city: no such place") as e:
        await host.task_configs(FULL, {"do": "value"}, 1)
    assert (e.value.key, e.value.value) == ("city", "Atlantis")
    with pytest.raises(ConnectError, match=where + r"what WeatherSource.task_configs returned is .*\[{'n': 1}\]; "):
        await host.task_configs(FULL, {"do": "number"}, 1)
    with pytest.raises(ConnectError, match="Failed to find any class"):
        await host.describe("com.acme.Unknown")


def unread(pid: int) -> int:
    """Unread bytes in the pipes of a process."""
    actual_unread = 0
    for file in Path(f"/proc/{pid}/fd").iterdir():
        if stat.S_ISFIFO(file.stat().st_mode):
            pipe = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
            actual_unread += waiting(pipe)
            os.close(pipe)
    return actual_unread


def waiting(pipe: int) -> int:
    return int(struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0])


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def stopped(host: PluginHost) -> int:
    """Freezes the host's process, which therefore does not react."""
    pid = int((await host.task_configs(FULL, {}, 1))[0]["pid"])
    os.kill(pid, signal.SIGSTOP)
    await eventually(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED, what="it makes no progress")
    return pid


@pytest.fixture
def left(tmp_path: Path) -> Iterator[Path]:
    """The file in which a plugin notes the process that it leaves behind; a test that fails leaves none."""
    file = tmp_path / "left"
    yield file
    if file.exists():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(file.read_text()), signal.SIGKILL)


def noting(file: Path, pid: str) -> str:
    """The code by which a plugin notes a process id in the file."""
    return f"import os; open('{file}.new', 'w').write(str({pid})); os.rename('{file}.new', '{file}')\n"


def noted(file: Path) -> int:
    """The noted process id. Raises OSError until then."""
    return int(file.read_text())


async def test_a_host_that_dies_is_started_again(host: PluginHost, tmp_path: Path) -> None:
    run = f"open('{tmp_path / 'begun'}', 'a').write('begun ')"
    await host.describe(FULL)
    with pytest.raises(Unavailable, match=rf"plugin acme-weather 1.4.0, {FULL}, task_configs: its process died"):
        await host.task_configs(FULL, {"do": "die", "run": run}, 1)
    assert (tmp_path / "begun").read_text() == "begun ", "the request that ended a process is not repeated"
    first = (await host.task_configs(FULL, {}, 1))[0]["pid"]
    os.kill(int(first), signal.SIGKILL)
    await eventually(lambda: not Path(f"/proc/{first}").exists(), what="the end of the host")
    assert (await host.task_configs(FULL, {}, 1))[0]["pid"] != first


async def test_a_question_that_a_host_never_heard_is_asked_of_another(host: PluginHost) -> None:
    first = await stopped(host)
    long = "Oslo" * 2500
    async with asyncio.TaskGroup() as group:
        requested_task = group.create_task(host.task_configs(FULL, {"city": long}, 1))
        await eventually(lambda: unread(first) > len(long), what="the question is in its pipe")
        os.kill(first, signal.SIGKILL)
    (task,) = requested_task.result()
    assert task["city"] == long
    assert int(task["pid"]) != first


def leaving(left: Path, more: str) -> str:
    """The code by which a plugin starts a process."""
    return f"import subprocess; child = subprocess.Popen(['sleep', '600'], {more})\n" + noting(left, "child.pid")


@pytest.mark.parametrize("more", ["", "start_new_session=True"])
async def test_what_a_host_has_started_ends_with_it(host: PluginHost, left: Path, more: str) -> None:
    (task,) = await host.task_configs(FULL, {"run": leaving(left, more)}, 1)
    assert not gone(noted(left))
    os.kill(int(task["pid"]), signal.SIGKILL)
    await eventually(lambda: gone(noted(left)), what="there was no request since")


async def test_what_a_plugin_has_started_ends_with_its_worker(host: PluginHost, left: Path) -> None:
    config = {"run": leaving(left, "start_new_session=True")}
    await host.task_configs(FULL, config, 1)
    await host.close()
    assert gone(noted(left)), "closed"
    left.unlink()
    program = (
        "import asyncio, sys\n"
        "from keelman.connectors.plugins.client import PluginHost\n"
        "from keelman.connectors.plugins.plugin_path import scan\n"
        "async def worker():\n"
        "    (plugin,) = scan(sys.argv[1]).plugins\n"
        f"    await PluginHost(plugin).task_configs({FULL!r}, {config!r}, 1)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(worker())\n"
    )
    command = [sys.executable, "-c", program, str(host.plugin.folder)]
    with subprocess.Popen(command) as worker:
        try:
            await eventually(left.exists, what="a worker's plugin has started a process")
            assert not gone(noted(left))
        finally:
            worker.kill()
    await eventually(lambda: gone(noted(left)), what="a worker that was killed leaves nothing")


async def test_a_plugin_that_forks_answers_once(host: PluginHost, left: Path) -> None:
    run = "import os\nif not os.fork():\n    " + noting(left, "os.getpid()")
    pid = (await host.task_configs(FULL, {"run": run}, 1))[0]["pid"]
    await eventually(lambda: gone(noted(left)), what="the end of the forked one, which would answer too")
    (task,) = await host.task_configs(FULL, {"city": "Oslo"}, 1)
    assert (task["city"], task["pid"]) == ("Oslo", pid)


async def test_a_host_that_died_is_not_taken_for_one_that_hangs(host: PluginHost, left: Path) -> None:
    run = f"import os, time\nif not os.fork():\n    os.setsid(); {noting(left, 'os.getpid()')}    time.sleep(600)\n"
    run += f"while not os.path.exists('{left}'):\n    time.sleep(0.01)\n"
    with pytest.raises(Unavailable, match="its process died"):
        await host.task_configs(FULL, {"run": run, "do": "die"}, 1)
    assert gone(noted(left)), "it has left the host's group, but not its reaper"


async def test_what_is_not_about_the_question_is_no_answer(host: PluginHost) -> None:
    run = (
        "import contextlib, os, stat\n"
        "for number in range(3, 64):\n"
        "    with contextlib.suppress(OSError):\n"
        "        if stat.S_ISFIFO(os.fstat(number).st_mode):\n"
        '            os.write(number, b\'{"id": 77, "result": []}\\n\')\n'
    )
    with pytest.raises(Unavailable, match=r"its answer cannot be read: it is not about the question: .*77") as e:
        await host.task_configs(FULL, {"run": run}, 1)
    assert e.value.reason == "PLUGIN_DIED"
    assert (await host.task_configs(FULL, {"city": "Oslo"}, 1))[0]["city"] == "Oslo"


async def test_a_host_is_given_up_whoever_else_has_its_pipes(host: PluginHost, left: Path) -> None:
    run = (
        "import os, stat, subprocess\n"
        "there = [n for n in range(3, 64) if os.path.exists(f'/proc/self/fd/{n}')]\n"
        "pipes = [n for n in there if stat.S_ISFIFO(os.fstat(n).st_mode)]\n"
        "other = subprocess.Popen(['sleep', '100'], start_new_session=True, pass_fds=pipes)\n"
    ) + noting(left, "other.pid")
    host._answer_seconds = 1
    async with asyncio.timeout(300):
        while not left.exists():
            host._answer_seconds *= 2
            with pytest.raises(DeadlineExceeded):
                await host.task_configs(FULL, {"run": run, "do": "hang"}, 1)
    assert gone(noted(left))


async def test_a_host_that_hangs_is_killed_and_started_again(host: PluginHost, tmp_path: Path) -> None:
    first = (await host.task_configs(FULL, {}, 1))[0]["pid"]
    host._answer_seconds = 0.5
    with pytest.raises(DeadlineExceeded, match=rf"{FULL}, task_configs: no answer in 0.5 s; its process was killed"):
        await host.task_configs(FULL, {"do": "hang"}, 1)
    assert not Path(f"/proc/{first}").exists()
    host._answer_seconds = 60
    begun = tmp_path / "begun"
    future = asyncio.ensure_future(host.task_configs(FULL, {"do": "hang", "run": f"open('{begun}', 'w')"}, 1))
    await eventually(begun.exists, what="the question hangs")
    future.cancel()
    with pytest.raises(asyncio.CancelledError):
        await future
    assert (await host.task_configs(FULL, {}, 1))[0]["n"] == "0"  # and not the late answer of the request before


async def test_a_start_that_takes_too_long_is_not_the_plugins_fault(
    host: PluginHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin_client, "START_SECONDS", 0.0)
    with pytest.raises(Unavailable, match=rf"{FULL}, describe: its process did not start in 0 s and was killed") as e:
        await host.describe(FULL)
    assert e.value.reason == Unavailable.reason
    monkeypatch.undo()
    await host.describe(FULL)


async def test_nothing_is_asked_after_the_end(host: PluginHost) -> None:
    await stopped(host)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_refused(host))
        await eventually(lambda: host._busy, what="a request is sent")
        await host.close()
    assert task.result() is None
    assert host.pid is None


async def _refused(host: PluginHost) -> None:
    with pytest.raises(Unavailable, match="this worker sends no more queries"):
        await host.describe(FULL)


def test_a_long_answer_is_whole_whatever_interrupts_it() -> None:
    command = [sys.executable, "-m", "keelman.connectors.plugins.host", "", "0"]
    config = {"file": "f" * 200_000, "topic": "t"}
    question = {"id": 1, "method": "task_configs", "class": "FileStreamSource", "config": config, "max_tasks": 1}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as host:
        try:
            assert host.stdin is not None
            assert host.stdout is not None
            host.stdin.write(json.dumps(question).encode() + b"\n")
            host.stdin.flush()
            pipe = host.stdout.fileno()
            most, end = fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ), time.monotonic() + 300
            while waiting(pipe) < most // 2:
                assert time.monotonic() < end
            assert most < 200_000, "it is in the middle of writing"
            host.send_signal(signal.SIGUSR1)
            answer = json.loads(host.communicate(timeout=300)[0].splitlines()[-1])
            assert answer["result"][0]["file"] == config["file"]
        finally:
            host.kill()


async def test_a_process_that_uses_a_plugin_finds_its_connectors(host: PluginHost, tmp_path: Path) -> None:
    program = (
        "import json, sys\n"
        "from keelman.connectors.registry import find_connector\n"
        "from keelman.connectors.plugins import plugin_path as plugins\n"
        "plugins.use(sys.argv[1])\n"
        "kind = find_connector('WeatherSource')\n"
        "batch = kind.open_reader({}, lambda _: None).read()\n"
        "ours = find_connector('FileStreamSink').names[1]\n"
        "print(json.dumps([kind.names[0], batch.values.values, sys.path[0], ours]))\n"
    )
    command = [sys.executable, "-c", program, str(host.plugin.folder)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, timeout=300, check=True, cwd=tmp_path)
    assert json.loads(done.stdout.splitlines()[-1]) == [
        FULL,
        ["rain"],
        str(host.plugin.folder),
        "FileStreamSinkConnector",
    ]
