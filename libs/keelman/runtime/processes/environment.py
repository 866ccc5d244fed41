"""Builds the environment of a workload: named variables, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

ALWAYS = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ",
    "JAVA_HOME", "LD_LIBRARY_PATH", "PYTHON*", "VIRTUAL_ENV", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "KEELMAN_HOME", "KEELMAN_CACHE", "KEELMAN_IVY_SETTINGS", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR",
)  # fmt: skip
OF_SERVICES = {
    "broker": ("KAFKA_*",),
    "spark": ("SPARK_*", "PYSPARK_*", "HADOOP_*", "YARN_CONF_DIR", "KUBECONFIG"),
    "worker": ("KAFKA_OPTS",),  # start scripts of Kafka Connect have options of Java's there
}


def clean_environment(
    environment: Mapping[str, str], service: str, *, in_file: Iterable[str] = (), passed: Iterable[str] = ()
) -> dict[str, str]:
    """Returns the part of `environment` that a process of the service gets.

    That includes its own settings (KEELMAN_<SERVICE>_*), but not those named `in_file`: its file has these, and the
    environment would win over it. `passed` are further names, or patterns of names such as AWS_*.
    """
    patterns = (*ALWAYS, *OF_SERVICES.get(service, ()), *passed)
    prefix = f"KEELMAN_{service.upper()}_"
    said = {prefix + key.upper() for key in in_file}

    def goes(name: str) -> bool:
        if name.startswith(prefix):
            return name not in said
        return any(fnmatchcase(name, pattern) for pattern in patterns)

    return {name: value for name, value in environment.items() if goes(name)}
