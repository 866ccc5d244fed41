"""Records the results of Apache Kafka Connect's transforms, predicates and converters for the cases in data_cases.py.

`python -m recorded.data.record_data` writes data.json beside it, a line with the result for each case; it needs a JDK
and fetches Connect's jars. Values are noted as {"type": value}, null for null: bool, int8, int16, int32, int64, float
and double (as Java's text), string, bytes (hex), decimal (text), date (ms), list, map ([[key, value], ...] in the map's
order) and struct ([[field, value], ...]); data is {"schema": as JsonConverter has it, "value"}.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from pathlib import Path

from keelman.runtime.java import maven
from keelman.runtime.java.installation import find
from recorded.data.data_cases import everything
from recorded.one_a_line import one_a_line

HERE = Path(__file__).resolve().parent


async def main() -> None:
    """Writes the record."""
    cases = everything()
    jars = await maven.jars(maven.Lock.read(maven.KAFKA_CONNECT))
    command = [
        str(find().program),
        "-Duser.timezone=UTC",
        "-cp",
        ":".join(map(str, jars)),
        str(HERE / "ConnectData.java"),
    ]
    lines = "".join(json.dumps({k: v for k, v in case.items() if k != "name"}) + "\n" for case in cases)
    done = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True, timeout=600, check=True)
    # An object without a text of its own shows its address.
    answers = [
        json.loads(re.sub(r"(InsertionSpec@)[0-9a-f]+", r"\g<1>0", line))
        for line in done.stdout.split("\n")
        if line.startswith("{")
    ]
    assert len(answers) == len(cases), f"{len(answers)} answers to {len(cases)} cases"
    told = [{**case, "answer": answer} for case, answer in zip(cases, answers, strict=True)]
    (HERE / "data.json").write_text(one_a_line(told, ascii_only=True))
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    asyncio.run(main())
