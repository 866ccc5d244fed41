"""Finds the nouns: each file of this folder that has a NOUN, or the API of one."""

from __future__ import annotations

import importlib
import pkgutil

from keelman.rpc.server import RpcService
from keelman.state import nouns
from keelman.state.nouns.parts import NounParts
from keelman.state.resources.batch import BatchApi
from keelman.state.resources.noun import Nouns

_MODULES = [
    importlib.import_module(f"{nouns.__name__}.{module.name}") for module in pkgutil.iter_modules(nouns.__path__)
]
NOUNS: Nouns = {noun.name: noun for noun in (getattr(m, "NOUN", None) for m in _MODULES) if noun}


def all_services(parts: NounParts) -> list[RpcService]:
    """Returns the gRPC services of all nouns, and that of several writes together."""
    apis = [module.API(parts) for module in _MODULES if hasattr(module, "API")]
    return [*map(RpcService.of, apis), RpcService.of(BatchApi(parts.store, apis))]
