"""Config providers that read only the files which the policies of their worker allow."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from keelman.connect.config import providers
from keelman.connect.config.providers import ConfigProvider, ConfigProviderError, DirectoryProvider, FileProvider, Stamp
from keelman.connect.policy.folders import is_inside
from keelman.connect.policy.policy import ANY, PROVIDERS, ConnectorPolicy, policies_of


def providers_of(properties: Mapping[str, str]) -> dict[str, ConfigProvider]:
    """Returns the providers of a worker's properties as `keelman.connect.config.providers`, held to its policies.

    Raises as that, and InvalidArgument for a policy that is not legal.
    """
    policies = tuple(policy for policy in policies_of(properties) if ANY not in policy.providers_allowed)
    return {name: _held(provider, policies) for name, provider in providers.providers_of(properties).items()}


def _held(provider: ConfigProvider, policies: tuple[ConnectorPolicy, ...]) -> ConfigProvider:
    reads_files = isinstance(provider, FileProvider | DirectoryProvider)
    return HeldProvider(provider, policies) if policies and reads_files else provider


@dataclass(frozen=True, slots=True)
class HeldProvider(ConfigProvider):
    """A provider of files, with the policies that limit them."""

    provider: ConfigProvider
    policies: tuple[ConnectorPolicy, ...]

    @classmethod
    def check(cls, parameters: Mapping[str, str]) -> None:
        """Its provider has checked them."""

    def get(self, path: str, keys: Iterable[str]) -> dict[str, str]:
        """Returns the values of the existing keys. Raises ConfigProviderError, also for a file outside."""
        names = list(keys)
        files = [os.path.join(path, name) for name in names] if isinstance(self.provider, DirectoryProvider) else [path]
        for policy in self.policies:
            for file in files:
                if not is_inside(file, policy.providers_allowed):
                    legal = ", ".join(policy.providers_allowed) or "none"
                    raise ConfigProviderError(
                        f"Path {file} is outside of what config providers may read: legal are files below {legal} (an "
                        f"administrator allows it by {policy.setting(PROVIDERS)})"
                    )
        return self.provider.get(path, names)

    def stamp(self, path: str, keys: Iterable[str]) -> Stamp:
        """Returns the files' stamps."""
        return self.provider.stamp(path, keys)
