"""Data sets that take each write once, by the name of its writer and its number.

`files` for the formats of files, `tables` for tables by JDBC, `snapshots` for Delta Lake and Iceberg; begin with
`keelman.spark.data_sets.writes`.
"""
