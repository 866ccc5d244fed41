"""Records the results of Apicurio Registry's converter for Connect for the cases in avro_cases.py.

These are Avro schemas, bytes, and the values that it reads back. Confluent's own converter is not on Maven Central;
Apicurio's AvroData is derived from it, with the same names. `python -m recorded.data.record_avro` writes avro.json
beside it, a line with the result for each case; it needs a JDK and fetches the jars. Values are noted as record_data.py
describes it.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import tempfile
from pathlib import Path

from keelman.runtime.java import maven
from keelman.runtime.java.installation import find
from recorded.data.avro_cases import everything
from recorded.one_a_line import one_a_line

HERE = Path(__file__).resolve().parent


async def main() -> None:
    """Writes the record."""
    cases = everything()
    jars = [
        *await maven.jars(maven.Lock.read(HERE / "avro.lock")),
        *await maven.jars(maven.Lock.read(maven.KAFKA_CONNECT)),
    ]
    java = find()
    with tempfile.TemporaryDirectory() as folder:
        path = ":".join([folder, *map(str, jars)])
        sources = [str(HERE / name) for name in ("ConnectData.java", "AvroRecords.java")]
        subprocess.run([str(java.home / "bin" / "javac"), "-d", folder, "-cp", path, *sources], check=True)
        command = [str(java.program), "-Duser.timezone=UTC", "-cp", path, "AvroRecords"]
        lines = "".join(json.dumps({k: v for k, v in case.items() if k != "name"}) + "\n" for case in cases)
        done = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True, timeout=600, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(answers) == len(cases), f"{len(answers)} answers to {len(cases)} cases"
    told = [{**case, "answer": answer} for case, answer in zip(cases, answers, strict=True)]
    (HERE / "avro.json").write_text(one_a_line(told, ascii_only=True))
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    asyncio.run(main())
