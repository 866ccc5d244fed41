"""The plugins that a worker cluster names, and the way back from a set that does not load."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PluginRef:
    """Names one plugin; as stored, version and digest are there."""

    name: str
    version: str = ""
    sha256: str = ""

    @property
    def key(self) -> str:
        """Its key among all plugins: name/version."""
        return f"{self.name}/{self.version}"

    def __str__(self) -> str:
        return f"{self.name} {self.version}".rstrip()


@dataclass(frozen=True, slots=True)
class PluginSet:
    """The set that the workers of a cluster load: plugins, and libraries that all of its Java plugins find."""

    plugins: tuple[PluginRef, ...] = ()
    libraries: tuple[PluginRef, ...] = ()

    @property
    def refs(self) -> tuple[PluginRef, ...]:
        """All of them."""
        return self.plugins + self.libraries


@dataclass(frozen=True, slots=True)
class WentBack:
    """A set did not load on the first worker that got it, so that the cluster went back to the one before."""

    process_generation: int
    """Of the cluster, with which it did not load; with another one the set is tried again."""
    worker: str
    message: str
    """Which plugin it was and why, for people."""


@dataclass(frozen=True, slots=True)
class PluginHistory:
    """The set that the workers of a cluster loaded before the last change, and whether they went back to it."""

    former: PluginSet | None = None
    went_back: WentBack | None = None


NO_HISTORY = PluginHistory()
