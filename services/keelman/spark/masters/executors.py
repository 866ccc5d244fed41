"""Gives executors what they need: a Python, the modules that slots import, and the way to the driver."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import javaproperties

from keelman.model.errors import InvalidArgument
from keelman.spark.masters.pack import FOLDER, Pack, python_version
from keelman.spark.masters.resources import resources
from keelman.spark.masters.slot_home import split_address
from keelman.spark.settings import Settings
from keelman.workers.spark_master import Master, MasterKind


@dataclass(frozen=True, slots=True)
class Executors:
    """`variables` are for the driver's JVM, which forks the slots of a local master; `configuration` is Spark's."""

    variables: Mapping[str, str]
    configuration: dict[str, str]

    @classmethod
    def of(
        cls, settings: Settings, master: Master, pack: Pack | None, path: Sequence[str], preload: Sequence[str]
    ) -> Executors:
        """Returns those for a driver of our own. `path` are folders that slots import from, `preload` their modules to
        load before the fork.

        Raises InvalidArgument.
        """
        own = slot_variables(path, preload)
        bind = "127.0.0.1"
        further = properties(settings.spark_properties)
        configuration = {"spark.pyspark.python": executor_python(settings), **resources(settings, master, further)}
        if master.kind is MasterKind.STANDALONE:
            host = settings.driver_host or _host_of(settings.advertised_address) or "127.0.0.1"
            bind = settings.driver_bind_host or host
            configuration |= {"spark.driver.host": host, "spark.driver.bindAddress": bind}
            theirs = own if pack is None else slot_variables([FOLDER, *path], preload)
            configuration |= {f"spark.executorEnv.{k}": v for k, v in theirs.items()}
            if pack is not None:
                configuration["spark.archives"] = f"{pack.file.absolute()}#{FOLDER}"
        # With SPARK_HOME set, slots would import pyspark from an uncompiled zip.
        kept_variables = {
            k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_", "JAVA_TOOL_OPTIONS"))
        }
        paths = [own["PYTHONPATH"], kept_variables.get("PYTHONPATH", "")]
        variables = {
            **kept_variables,
            **own,
            "PYTHONPATH": os.pathsep.join(p for p in paths if p),
            "SPARK_CONNECT_MODE": "0",
            "SPARK_LOCAL_IP": bind,
        }
        return cls(variables, configuration | further)


def slot_variables(path: Sequence[str], preload: Sequence[str]) -> dict[str, str]:
    """Returns the environment of slots."""
    return {
        "PYTHONPATH": os.pathsep.join(path),
        "KEELMAN_SLOT_PRELOAD": ",".join(preload),
        # A library that starts a thread when it is imported cannot be imported before a fork.
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "JE_ARROW_MALLOC_CONF": "background_thread:false",
    }


def executor_python(settings: Settings) -> str:
    """Returns the Python that executors of a remote master run."""
    if settings.executor_python:
        return settings.executor_python
    return sys.executable if settings.pack is None else f"python{python_version()}"


def properties(file: Path | None) -> dict[str, str]:
    """Returns Spark's properties from a file, none without one. Raises InvalidArgument when it cannot be read."""
    if file is None:
        return {}
    try:
        return javaproperties.loads(file.read_text(encoding="utf-8"))  # type: ignore[no-any-return]
    except (OSError, ValueError) as error:
        raise InvalidArgument.of("spark.spark_properties", str(file), f"a readable properties file ({error})") from None


def _host_of(address: str) -> str:
    return split_address("spark.advertised_address", address)[0] if address else ""
