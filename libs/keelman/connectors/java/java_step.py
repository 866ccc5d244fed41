"""One transform of a Java connector's chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from keelman.connect.tolerance import Stage


@dataclass(frozen=True, slots=True)
class JavaStep:
    """`target` has a public method `apply` of the Java class `kind`, which takes a `parameter`. It is `transform` where
    `predicate`, if there is one, does not say `negate`."""

    target: Any
    kind: Any
    parameter: Any
    stage: Stage
    alias: str
    transform: Any
    predicate: Any = None
    negate: bool = False
