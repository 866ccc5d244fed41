"""Finds third-party connectors below plugin.path, enters them in the registry, and calls them in separate processes.

A worker imports none of their code. In its registry each class has a stand-in, a `Connector` like any other, so that
callers of a connector's class need not know where it comes from.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from keelman.connect.config.definition import ConfigDef
from keelman.connect.config.info import ConfigError, problems
from keelman.connect.config.versions import Ordered, ordered
from keelman.connect.offsets import AlteredOffsets
from keelman.connect.plugin import Connector, Direction
from keelman.connectors import registry
from keelman.connectors.plugins.client import Description, PluginHost
from keelman.connectors.plugins.java_folders import UNDEFINED, JavaPlugin
from keelman.connectors.plugins.plugin_path import Catalog, InstalledPlugin, PluginFault, scan
from keelman.connectors.validation import configuration as validation
from keelman.model.errors import KeelmanError, NotFound
from keelman.model.workload import PLUGIN_BROKEN
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import Siblings
from keelman.runtime.version import version
from keelman.worker.asking import java_plugins
from keelman.worker.asking.java_plugins import NOT_READY
from keelman.workers.properties.plugin_bounds import PluginBounds, plugin_bounds

log = get_logger()
T = TypeVar("T")
READY_SECONDS = 30.0
REST_SECONDS = 20.0
BOUNDS = plugin_bounds({})
OffsetReader = Callable[[Mapping[str, str]], Awaitable[Sequence[tuple[bytes, bytes]]]]
"""Returns the committed offsets of the connector of a (resolved) configuration, as rows of the offset topic."""
_open: list[ThirdParty] = []


async def _no_offsets(_config: Mapping[str, str]) -> Sequence[tuple[bytes, bytes]]:
    return ()


class StandIn(Connector):
    """Answers for a third-party class. Attributes are at hand; methods wait for its process: in a thread only.

    They raise the errors of `PluginHost`.
    """

    plugin: ClassVar[InstalledPlugin]
    _host: ClassVar[PluginHost]
    _started: ClassVar[PluginHost]
    """The host for questions about tasks: for a Java class one process, in which its connectors stay started."""
    _plugins: ClassVar[ThirdParty]

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Returns the class's own keys, without validators."""
        return cls._plugins.wait(cls._host.config_def(cls.names[0]))

    @classmethod
    def task_configs(cls, config: Mapping[str, str], max_tasks: int) -> list[dict[str, str]]:
        """Returns one configuration per task; a Java source receives its committed offsets."""
        return cls._plugins.wait(cls._plugins.ask_tasks(cls, cls._started, config, max_tasks))

    @classmethod
    def supports_exactly_once(cls, config: Mapping[str, str]) -> bool:
        """Also in the event loop: raises NotFound (PLUGIN_NOT_READY) there while the answer is pending."""
        if cls.plugin.java is not None:
            return cls.direction is Direction.SOURCE
        return cls._plugins.exactly_once(cls._host, cls.names[0], config)

    @classmethod
    def refresh_seconds(cls, config: Mapping[str, str]) -> float | None:
        """Returns the interval at which the class is tended and its tasks are computed again."""
        return cls._plugins.wait(cls._started.refresh_seconds(cls.names[0], config))

    @classmethod
    def tend(cls, config: Mapping[str, str]) -> None:
        """Has the class do the work that concerns the whole connector."""
        cls._plugins.wait(cls._started.tend(cls.names[0], config))

    @classmethod
    def tend_again(cls, config: Mapping[str, str], tasks: Sequence[Mapping[str, str]]) -> bool:
        """Returns the class's answer when its refresh is due."""
        return cls._plugins.wait(cls._started.tend_again(cls.names[0], config, tasks))

    @classmethod
    def alter_offsets(cls, config: Mapping[str, str], offsets: AlteredOffsets) -> bool:
        """Returns the class's answer to offsets that a user sets or deletes."""
        return cls._plugins.wait(cls._host.alter_offsets(cls.names[0], config, offsets))

    @classmethod
    def infos(cls, config: Mapping[str, str | None], worker_config: Mapping[str, str]) -> dict[str, Any]:
        """Returns ConfigInfos of a whole connector configuration."""
        return cls._plugins.wait(cls._host.validate(cls.names[0], config, worker_config))


class ThirdParty:
    """One per worker process. Calls `changed`, in the event loop, when a pending answer has arrived."""

    def __init__(
        self, catalog: Catalog, changed: Callable[[], None], bounds: PluginBounds, libraries: Sequence[str]
    ) -> None:
        """Use `open`."""
        self.catalog = catalog
        self._libraries = libraries
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._siblings = Siblings()
        seconds, memory = bounds.answer_seconds, bounds.host_memory
        ours = InstalledPlugin("keelman", version(), Path(), {})
        self._apart = PluginHost(ours, answer_seconds=seconds, memory_bytes=memory)
        self._hosts = {
            plugin.folder: PluginHost(plugin, answer_seconds=seconds, memory_bytes=memory) for plugin in catalog.plugins
        }
        self._started = {
            plugin.folder: PluginHost(plugin, answer_seconds=seconds, memory_bytes=memory, processes=1)
            for plugin in catalog.plugins
            if plugin.java is not None
        }
        self._java: dict[Path, JavaPlugin] = {}
        self._read_offsets: OffsetReader = _no_offsets
        self._known: dict[tuple[Path, str], type[StandIn] | NotFound] = {}
        self._until = self._loop.time() + READY_SECONDS
        self._tried = {plugin.folder: asyncio.Event() for plugin in catalog.plugins}
        self._exactly: dict[str, tuple[Mapping[str, str], bool | Exception | None]] = {}
        for plugin in catalog.plugins:
            for full in plugin.classes:
                if catalog.find(full) == (plugin, full):
                    registry.add(full, *(partial(self._stand_in, plugin, full) for plugin in catalog.with_class(full)))

    @staticmethod
    @contextlib.asynccontextmanager
    async def open(
        plugin_path: str, changed: Callable[[], None], bounds: PluginBounds = BOUNDS, libraries: Sequence[str] = ()
    ) -> AsyncIterator[ThirdParty]:
        """Finds the plugins and begins to describe their classes; callers that need one meanwhile wait in a thread."""
        third_party = ThirdParty(await asyncio.to_thread(scan, plugin_path, libraries), changed, bounds, libraries)
        async with contextlib.AsyncExitStack() as stack:
            for host in (third_party._apart, *third_party._hosts.values(), *third_party._started.values()):
                stack.push_async_callback(host.close)
            stack.push_async_callback(third_party._stop_started)
            _open.append(third_party)
            stack.callback(_open.remove, third_party)
            siblings = await stack.enter_async_context(third_party._siblings)
            for host in third_party._hosts.values():
                siblings.start(third_party._describe(host), name=f"describes {host.plugin}")
            if third_party._started:
                siblings.start(third_party._rest_java(), name="rests plugin hosts")
            yield third_party

    async def read(self) -> None:
        """Returns when all plugins have described their classes, or their time is up."""
        for plugin in self.catalog.plugins:
            await self._await_description(plugin)

    def begin_offsets(self, read: OffsetReader) -> None:
        """Has Java sources receive from now on the offsets that `read` returns as committed; it raises KeelmanError."""
        self._read_offsets = read

    async def ask_tasks(
        self, kind: type[Connector], host: PluginHost, config: Mapping[str, str], most: int
    ) -> list[dict[str, str]]:
        """Returns one configuration per task. Raises as `PluginHost`, and KeelmanError where offsets cannot be read."""
        source = host.plugin.java is not None and kind.direction is Direction.SOURCE
        offsets = await self._read_offsets(config) if source else None
        return await host.task_configs(kind.names[0], config, most, offsets=offsets)

    @property
    def jars(self) -> list[list[str]]:
        """All jars that Java code is loaded from, grouped as they are loaded together: shared ones first."""
        shared = [jar for folder in self._libraries for jar in sorted(Path(folder).expanduser().rglob("*.jar"))]
        java = [plugin.java for plugin in self.catalog.plugins if plugin.java is not None]
        own = [[*plugin.jars, *plugin.libraries] for plugin in java]
        return [[str(jar) for jar in together] for together in (shared, *own) if together]

    def with_steps(self, config: Mapping[str, str]) -> InstalledPlugin | None:
        """As `java_plugins.with_steps`."""
        java = [plugin for plugin in self.catalog.plugins if plugin.java is not None]
        ready = all(self._tried[plugin.folder].is_set() for plugin in java)
        return java_plugins.with_steps(config, java, ready=ready)

    def java(self, plugin: InstalledPlugin) -> JavaPlugin | None:
        """Returns a Java plugin with the descriptions of its classes, as far as they have arrived."""
        return self._java.get(plugin.folder, plugin.java)

    def known(self, plugin: InstalledPlugin, name: str) -> type[Connector] | NotFound:
        """Returns the stand-in of a plugin's class, or why the class cannot be used, or not yet."""
        return self._known.get((plugin.folder, name)) or NotFound("has not been described yet", reason=NOT_READY)

    async def _await_description(self, plugin: InstalledPlugin) -> None:
        """Returns when a plugin has described its classes, or its time is up: the rest is done in the background."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(self._until):
                await self._tried[plugin.folder].wait()

    def _stand_in(self, plugin: InstalledPlugin, name: str) -> type[StandIn]:
        """Returns a class's stand-in. In a thread, waits for the first answer of a plugin that is being described.

        Raises NotFound: PLUGIN_NOT_READY if the class may become known later, PLUGIN_BROKEN if it cannot be used.
        """
        stand_in = self._known.get((plugin.folder, name))
        if stand_in is None and not _in_loop():
            self.wait(self._await_description(plugin))
            stand_in = self._known.get((plugin.folder, name))
        if stand_in is None:
            raise NotFound(f"plugin {plugin} has not described {name} yet", reason=NOT_READY)
        if isinstance(stand_in, NotFound):
            raise NotFound(stand_in.message, reason=stand_in.reason)
        return stand_in

    async def _describe(self, host: PluginHost) -> None:
        """Describes each class of a plugin, again while its process hangs or dies."""
        backoff = Backoff(first=2.0, most=300.0)
        unknown = await self._describe_once(host, list(host.plugin.classes))
        self._tried[host.plugin.folder].set()
        while unknown:
            await asyncio.sleep(backoff.next())
            unknown = await self._describe_once(host, unknown)
        await host.rest()  # most plugins of an installation are in no connector

    async def _describe_once(self, host: PluginHost, names: Sequence[str]) -> list[str]:
        """Describes these classes; returns those that have to be described again."""
        if host.plugin.java is not None:
            return await self._describe_java(host, host.plugin.java, names)
        plugin, again = host.plugin, []
        faults: dict[str, list[str]] = {}
        for name in names:
            try:
                description = await host.describe(name)
            except KeelmanError as error:
                self._known[plugin.folder, name] = NotFound(error.message, reason=NOT_READY)
                again.append(name)
            except Exception as error:  # no exception of a plugin may end the worker
                faults.setdefault(error.why if isinstance(error, PluginFault) else str(error), []).append(name)
                self._known[plugin.folder, name] = NotFound(str(error), reason=PLUGIN_BROKEN)
            else:
                self._known[plugin.folder, name] = self._made(host, name, description)
                log.info("plugin", plugin=str(plugin), connector=name, version=description.version)
        for fault, broken in faults.items():  # classes of one module share its fault
            log.warning("plugin_broken", plugin=str(plugin), connector=", ".join(broken), error=fault)
        self._judge_usable(names)
        self._changed()
        return again

    def _order(self, name: str) -> None:
        """Orders the registry's entries of a Java class by the versions that it reports itself, the latest first."""

        def version_of(plugin: InstalledPlugin) -> Ordered:
            kind = self._known.get((plugin.folder, name))
            return ordered(plugin.version if kind is None or isinstance(kind, NotFound) else kind.version)

        plugins = sorted(self.catalog.with_class(name), key=version_of, reverse=True)
        if len(plugins) > 1:
            registry.add(name, *(partial(self._stand_in, plugin, name) for plugin in plugins))

    def _judge_usable(self, names: Sequence[str]) -> None:
        for name in names:
            versions = [self.known(plugin, name) for plugin in self.catalog.with_class(name)]
            broken_all = all(isinstance(kind, NotFound) and kind.reason == PLUGIN_BROKEN for kind in versions)
            registry.set_usable(name, usable=not broken_all)

    async def _describe_java(self, host: PluginHost, java: JavaPlugin, names: Sequence[str]) -> list[str]:
        """As `_describe_once` for Java classes, once everything that they run with is present."""
        try:
            java = self._java[host.plugin.folder] = await java_plugins.ask_java(host, java)
        except KeelmanError as error:
            log.warning("java_plugins_unusable", plugin=str(host.plugin), error=error.message)
            for name in names:
                text = f"{name} of plugin {host.plugin} cannot run: {error.message}"
                self._known[host.plugin.folder, name] = NotFound(text, reason=NOT_READY)
            return list(names)
        for connector in java.connectors:
            name = registry.java_name(connector.class_name)
            if problem := java.problem_of(connector.class_name):
                self._known[host.plugin.folder, name] = NotFound(problem, reason=PLUGIN_BROKEN)
                log.warning("plugin_broken", plugin=str(host.plugin), connector=name, error=problem)
                continue
            description = Description((name,), connector.version or UNDEFINED, Direction(connector.type), "anywhere")
            self._known[host.plugin.folder, name] = self._made(host, name, description)
            log.info("plugin", plugin=str(host.plugin), connector=name, version=description.version)
        for name in names:
            self._order(name)
        self._judge_usable(names)
        registry.add_steps(java_plugins.steps(((self._hosts[f], java) for f, java in self._java.items()), self.wait))
        self._changed()
        return []

    async def _rest_java(self) -> None:
        """Ends idle processes with a Java virtual machine, which are large."""
        while True:
            await asyncio.sleep(REST_SECONDS)
            for plugin in self._started:
                await self._hosts[plugin].rest_when_idle()
                await self._started[plugin].rest_when_idle()

    async def _stop_started(self) -> None:
        for host in self._started.values():
            if host.plugin.classes:
                await host.stop_started(next(iter(host.plugin.classes)))

    def stand_in(self, kind: type[Connector]) -> type[Connector]:
        """Returns a stand-in that runs one of our own connectors in a separate process."""
        description = Description(kind.names, kind.version, kind.direction, kind.runs_on)
        return self._made(self._apart, kind.names[0], description)

    def _made(self, host: PluginHost, name: str, description: Description) -> type[StandIn]:
        names = (name, *(alias for alias, full in host.plugin.names().items() if full == name and alias != name))
        attributes = {"names": names, "version": description.version, "direction": description.direction}
        attributes["runs_on"] = description.runs_on
        hosts = {"_host": host, "_started": self._started.get(host.plugin.folder, host)}
        return type(name, (StandIn,), {**attributes, **hosts, "plugin": host.plugin, "_plugins": self})

    def wait(self, question: Coroutine[Any, Any, T]) -> T:
        """Returns the answer, in a thread that may wait for it. Raises the question's errors."""
        if _in_loop():
            question.close()
            raise RuntimeError("a third-party connector is queried in a thread, never in the event loop")
        return asyncio.run_coroutine_threadsafe(question, self._loop).result()

    def exactly_once(self, host: PluginHost, name: str, config: Mapping[str, str]) -> bool:
        """As `StandIn.supports_exactly_once`. Raises a class's error once; the next call starts a new query."""
        if not _in_loop():
            return self.wait(host.supports_exactly_once(name, config))
        connector = config.get("name", "")
        answer = self._exactly.get(connector)
        if answer is None or answer[0] != config:
            self._exactly[connector] = (config, None)
            self._siblings.start(self._ask_exactly_once(host, name, config), name=f"asks {connector}")
        elif isinstance(answer[1], Exception):
            del self._exactly[connector]
            raise answer[1]
        elif answer[1] is not None:
            return answer[1]
        raise NotFound(f"plugin {host.plugin} has not yet answered for {connector}", reason=NOT_READY)

    async def _ask_exactly_once(self, host: PluginHost, name: str, config: Mapping[str, str]) -> None:
        answer: bool | Exception
        try:
            answer = await host.supports_exactly_once(name, config)
        except Exception as error:  # the task reports it
            answer = error
        self._exactly[config.get("name", "")] = (config, answer)
        self._changed()


def infos_of(config: Mapping[str, str | None], worker_config: Mapping[str, str]) -> dict[str, Any]:
    """Returns ConfigInfos of a configuration, for any class. In a thread; raises as `StandIn` and
    `validation.validate`."""
    named = config.get("connector.class")
    kind: type[Connector] | None = None
    if named is not None:
        with contextlib.suppress(NotFound):  # `validate` reports the problem: the class or the version
            kind = registry.find_connector(named, config.get("connector.plugin.version"))
    if kind is not None and issubclass(kind, StandIn):
        return kind.infos(config, worker_config)
    return validation.validate(config, worker_config)


def problems_of(config: Mapping[str, str | None], worker_config: Mapping[str, str]) -> list[ConfigError]:
    """Returns all problems of a connector's configuration. In a thread; raises as `infos_of`."""
    return problems(infos_of(config, worker_config), config)


def to_ask(kind: type[Connector]) -> type[Connector]:
    """Returns the class to use for questions about tasks: a stand-in for an own class that has to run apart."""
    return _open[-1].stand_in(kind) if kind.asked_apart and _open else kind


def jars_here() -> list[list[str]]:
    """Returns `ThirdParty.jars` of this worker."""
    return _open[-1].jars if _open else []


def plugin_of(kind: type[Connector]) -> InstalledPlugin | None:
    """Returns the class's plugin; None for our own classes."""
    return kind.plugin if issubclass(kind, StandIn) else None


def plugin_for(kind: type[Connector], config: Mapping[str, str]) -> InstalledPlugin | None:
    """Returns the plugin that slots need for a connector: its class's or, for an own class, that of the Java classes
    which it names. Raises NotFound (PLUGIN_NOT_READY)."""
    if issubclass(kind, StandIn) or not _open:
        return plugin_of(kind)
    return _open[-1].with_steps(config)


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
