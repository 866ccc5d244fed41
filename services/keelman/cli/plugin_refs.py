"""Parses the plugins of a worker cluster from the options of `create` and `update`: NAME or NAME:VERSION."""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence

from keelman.api.connect.v1.plugin_pb2 import PluginRef
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerEngine
from keelman.model.errors import InvalidArgument

ENGINES = {"keelman": WorkerEngine.WORKER_ENGINE_KEELMAN, "kafka-connect": WorkerEngine.WORKER_ENGINE_KAFKA_CONNECT}


def named(option: str, texts: Sequence[str]) -> list[PluginRef]:
    """Parses the given plugins. Raises InvalidArgument."""
    refs = []
    for text in texts:
        name, colon, version = text.strip().partition(":")
        if not name or (colon and not version):
            raise InvalidArgument.of(option, text, "NAME (the newest version) or NAME:VERSION")
        refs.append(PluginRef(name=name, version=version))
    return refs


def edit(option: str, present: MutableSequence[PluginRef], texts: Sequence[str], removed: Sequence[str] = ()) -> None:
    """Replaces present plugins by given ones of the same names, appends the others, and removes the removed ones.
    Raises InvalidArgument."""
    new = named(f"--{option}", texts)
    names = [ref.name for ref in present]
    for name in removed:
        if name not in names:
            names_text = ", ".join(names) or "it has none"
            raise InvalidArgument.of(f"--remove-{option}", name, f"one of its plugins: {names_text}")
    refs: list[PluginRef] = []
    for ref in present:
        if ref.name in removed:
            continue
        mine = [ref_wanted for ref_wanted in new if ref_wanted.name == ref.name]
        refs += [ref_wanted for ref_wanted in (mine or [ref]) if ref_wanted not in refs]
    refs += [ref_wanted for ref_wanted in new if ref_wanted not in refs]
    del present[:]
    present.extend(refs)


def engine_of(text: str) -> WorkerEngine.ValueType:
    """Parses the value of --engine. Raises InvalidArgument."""
    if text not in ENGINES:
        raise InvalidArgument.of("--engine", text, " or ".join(ENGINES))
    return ENGINES[text]
