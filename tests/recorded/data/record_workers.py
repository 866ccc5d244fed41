"""Records which worker properties Connect refuses: run it after a change of Kafka's version.

`python -m recorded.data.record_workers` writes worker_facts.json beside it; it needs a JDK and fetches Connect's jars.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from keelman.workers.properties.kafka_connect import KEYS
from recorded.data.record_clients import run_java

HERE = Path(__file__).resolve().parent
NUMBERS = ("", "soon", "1_0", " 7 ", "-2", "-1", "0", "1", "40000", "3000000000", "99999999999999999999")
WORDS = ("", "maybe", "true", "TRUE ", "eager", "Enabled", "enabled", "info", "INFO", "sasl_ssl", "SSL", "none", "NONE")
WORDS += (
    "use_all_dns_ips",
    "hybrid_warn",
    "HYBRID_FAIL",
    "TRACE",
    "EAGER",
    "RS256",
    "requested",
    "0.2",
    "0.75",
    "3601",
)
OTHERS = (
    ("inter.worker.signature.algorithm", "HmacSHA512"),
    ("inter.worker.signature.algorithm", "NoSuch"),
    ("response.http.headers.config", "remove X-A: b"),
    ("response.http.headers.config", "set X-A"),
    ("response.http.headers.config", "set X-A: b, add X-C: d"),
    ("access.control.allow.origin", "("),
    ("key.converter", ""),
    ("value.converter", ""),
)


def main() -> None:
    """Writes the record: a line per key."""
    names = [key.name for key in KEYS]
    request = [(name, value) for name in names for value in (*NUMBERS, *WORDS)] + list(OTHERS)
    facts = json.loads(asyncio.run(run_java("WorkerFacts.java", request)))
    keys = [f"  {json.dumps(name)}: {json.dumps(said)}" for name, said in facts["keys"].items()]
    cases: dict[str, dict[str, list[str]]] = {}
    for case in facts["cases"]:
        values = cases.setdefault(case["key"], {"taken": [], "refused": []})
        values["taken" if case["error"] is None else "refused"].append(case["value"])
    values_said = [f"  {json.dumps(name)}: {json.dumps(values)}" for name, values in cases.items()]
    lines = ["{", ' "keys": {', ",\n".join(keys), " },", ' "values": {', ",\n".join(values_said), " }", "}"]
    (HERE / "worker_facts.json").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
