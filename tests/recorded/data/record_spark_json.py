"""Records rows as Spark's to_json writes them: spark_json.txt, a text a line.

`python -m recorded.data.record_spark_json`; `record_data` then has Connect read them.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

HERE = Path(__file__).resolve().parent
ROWS = (
    "timestamp'0001-01-01 00:00:00' AS first, timestamp'1969-12-31 23:59:59.999999' AS before, "
    "timestamp_ntz'2024-02-29 12:00:00.5' AS local, date'1582-10-04' AS old, date'9999-12-31' AS last",
    "CAST('123456789012345678901234567890.12345678' AS DECIMAL(38, 8)) AS wide, CAST(0 AS DECIMAL(10, 5)) AS zero, "
    "CAST('-0.00000001' AS DECIMAL(20, 8)) AS least",
    "CAST(-128 AS TINYINT) AS b, CAST(32767 AS SMALLINT) AS s, -2147483648 AS i, 9223372036854775807 AS l, "
    "CAST(0.1 AS FLOAT) AS f, 1e300 AS d, CAST('NaN' AS DOUBLE) AS nan, CAST('-Infinity' AS FLOAT) AS inf, -0.0D AS z",
    "named_struct('a', 1, 'inner', named_struct('x', CAST(NULL AS INT), 'y', array(named_struct('z', true)))) AS n, "
    "map('k', array(1, NULL), '', array()) AS m, array(map(1, 'one')) AS by_number",
    "'é€😀\\n\\t\"\\\\/' AS text, X'00FF' AS bytes, CAST(NULL AS STRING) AS nothing, interval 1 year AS span, "
    "interval '1 02:03:04.5' day to second AS time",
)


def main() -> None:
    """Writes the record."""
    quiet = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.sql.session.timeZone": "UTC"}
    spark = SparkSession.builder.master("local[1]").config(map=quiet).getOrCreate()
    texts = []
    for row in ROWS:
        for nulls in ("true", "false"):
            spark.conf.set("spark.sql.jsonGenerator.ignoreNullFields", nulls)
            texts += spark.sql(f"SELECT {row}").toJSON().collect()
    spark.stop()
    (HERE / "spark_json.txt").write_text("\n".join(dict.fromkeys(texts)) + "\n", encoding="utf-8")
    print(f"{len(texts)} texts")


if __name__ == "__main__":
    main()
