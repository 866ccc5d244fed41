"""Transforms and predicates of a connector's configuration as Java objects, applied as Connect applies them.

Source: `ConnectorConfig.transformationStages` and `TransformationStage` of Kafka Connect 4.3. The stage is Connect's
own class, whose constructor is not public; it swaps class loaders, which here is done once around a whole batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keelman.connect.config.types import Type, parse_type
from keelman.connect.errors import ConfigValueError
from keelman.connect.failed_record import Stage, transform_stage
from keelman.connectors.java.configs import string_map
from keelman.connectors.java.errors import translated
from keelman.connectors.java.handles import Handles
from keelman.connectors.java.jvm import java_class, jpype
from keelman.connectors.java.plugin_loader import VERSION, PluginLoader
from keelman.connectors.java.plugin_metrics import PluginMetrics
from keelman.model.keys import under

CONNECT = "org.apache.kafka.connect"
RECORD = f"{CONNECT}.connector.ConnectRecord"
STAGE = f"{CONNECT}.runtime.TransformationStage"
CONSTRUCTOR_PARAMETERS = 8
NOT_THEIRS = ("type", "predicate", "negate", VERSION)


@dataclass(frozen=True, slots=True)
class JavaStep:
    """One transform of a connector's chain.

    `target` has a public method `apply` of the Java class `kind`, which takes a `parameter`. It is `transform` where
    `predicate`, if there is one, does not say `negate`.
    """

    target: Any
    kind: Any
    parameter: Any
    stage: Stage
    alias: str
    transform: Any
    predicate: Any = None
    negate: bool = False


def java_transforms(loader: PluginLoader, config: Mapping[str, str], metrics: PluginMetrics) -> list[JavaStep]:
    """Returns the transforms in their order, each with its predicate; they keep their own metrics among `metrics`.

    Raises ConfigValueError, and ConnectError for a class's exceptions when it is made or configured."""
    aliases = _listed(config, "transforms")
    if not aliases:
        return []
    constructor, swapper = _constructor(), _swapper(loader)
    steps = []
    for alias in aliases:
        step = _step(loader, config, alias, constructor, swapper)
        bound = config.get(f"transforms.{alias}.predicate") or ""
        with loader.entered(), translated(f"transforms.{alias}"):
            metrics.give(step.transform, transformation=alias)
            metrics.give(step.predicate, predicate=bound)
        steps.append(step)
    return steps


def _step(loader: PluginLoader, config: Mapping[str, str], alias: str, constructor: Any, swapper: Any) -> JavaStep:
    own = under(f"transforms.{alias}.", config)
    transform, class_name = _made(loader, f"transforms.{alias}.type", own)
    bound, predicate = own.get("predicate"), None
    if bound:
        predicate, _ = _made(loader, f"predicates.{bound}.type", under(f"predicates.{bound}.", config))
    negate = own.get("negate", "false").strip().lower() == "true"
    negated = java_class("java.lang.Boolean")(negate)
    arguments = [_wrapped(predicate), bound, None, negated, _wrapped(transform), alias, None, swapper]
    stage = constructor.newInstance(jpype().JArray(java_class("java.lang.Object"))(arguments))
    kinds = java_class(STAGE), java_class(RECORD)
    return JavaStep(stage, *kinds, transform_stage(alias, class_name), alias, transform, predicate, negate)


def _made(loader: PluginLoader, key: str, own: Mapping[str, str]) -> tuple[Any, str]:
    """Returns a configured transform or predicate in the version of its own keys, and the name of its class."""
    named = own.get("type", "")
    if not named.strip():
        raise ConfigValueError(key, None, whole=f'Missing required configuration "{key}" which has no default value.')
    class_name = loader.full_name(named)
    options = string_map({name: value for name, value in own.items() if name not in NOT_THEIRS})
    plugin = loader.of(class_name, own.get(VERSION), f"{key.removesuffix('type')}{VERSION}")
    with plugin.entered(), translated(f"{key}={class_name}"):
        step = plugin.load(class_name)()
        step.configure(options)
    return step, class_name


def _wrapped(step: Any) -> Any:
    if step is None:
        return None
    plugin = java_class("org.apache.kafka.common.internals.Plugin")
    return plugin.wrapInstance(
        step, jpype().JObject(None, java_class("org.apache.kafka.common.metrics.Metrics")), "step"
    )


def _constructor() -> Any:
    for constructor in java_class(STAGE).class_.getDeclaredConstructors():
        if len(constructor.getParameterTypes()) == CONSTRUCTOR_PARAMETERS:
            constructor.setAccessible(True)
            return constructor
    raise LookupError(f"{STAGE} of this version of Kafka Connect has no constructor that keelman knows")


def _swapper(loader: PluginLoader) -> Any:
    """A function that leaves the thread's class loader as it is: that of the plugin."""
    handles = Handles()
    swap = java_class(f"{CONNECT}.runtime.isolation.LoaderSwap")
    same = handles.constant(swap, swap(loader.loader), java_class("java.lang.ClassLoader"))
    proxies = java_class("java.lang.invoke.MethodHandleProxies")
    function = java_class("java.util.function.Function")
    return proxies.asInterfaceInstance(function, handles.retyped(same, handles.object, handles.object))


def _listed(config: Mapping[str, str], key: str) -> list[str]:
    text = config.get(key)
    return [] if text is None else list(parse_type(key, text, Type.LIST) or ())
