"""Records values as Go's encoding/json and Python's json write them: json_writers.txt, a text a line.

`python -m recorded.data.record_json_writers`; it needs Go. `record_data` then has Connect read them.
"""

from __future__ import annotations

import datetime
import json
import math
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
VALUES = (
    *(None, True, -(1 << 63), (1 << 64) - 1, 1 << 70, 0.0, -0.0, 1e16, 1e22, 1e-5, 1.7976931348623157e308, 5e-324),
    *(
        math.nan,
        math.inf,
        -math.inf,
        "é€😀",
        "\ud800",
        "\x00\x1f\x7f\u2028",
        '<a href="x">',
        [],
        {},
        {"b": 1, "a": None},
    ),
    {"at": datetime.datetime(1, 1, 1, tzinfo=datetime.UTC).isoformat(), "n": [1, 1.0, "1"], "é": {"": {"": []}}},
)


def main() -> None:
    """Writes the record."""
    go = subprocess.run(["go", "run", "main.go"], cwd=HERE / "go_json", check=True, stdout=subprocess.PIPE).stdout
    texts = go.decode().split("\n")[:-1]
    texts += [json.dumps(value) for value in VALUES]
    texts += [json.dumps(value, ensure_ascii=False, indent=1).replace("\n", " ") for value in VALUES[-3:]]
    (HERE / "json_writers.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    print(f"{len(texts)} texts")


if __name__ == "__main__":
    main()
