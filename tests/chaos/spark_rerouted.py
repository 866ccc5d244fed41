"""The Spark service, except that its slots call home through the address given first (a proxy)."""

import sys
from dataclasses import replace
from typing import Any

from keelman.runtime.logs.logging import configure
from keelman.runtime.settings import load
from keelman.runtime.supervise import run_process
from keelman.spark import service
from keelman.spark.settings import Settings

home, *flags = sys.argv[1:]
Order = service.SlotOrder


def rerouted(**fields: Any) -> Any:
    return replace(Order(**fields), home=home)


service.SlotOrder = rerouted  # type: ignore[assignment,misc]
settings = load(Settings, "spark", flags=dict(flag.split("=", 1) for flag in flags)).settings
configure("spark")
raise SystemExit(
    run_process("keelman spark", lambda stop: service.run(settings, stop), grace_seconds=settings.grace_seconds)
)
