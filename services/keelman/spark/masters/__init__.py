"""Spark itself: the kinds of masters, how each is started, and the jobs that it runs for slots.

Begin with `restarted_spark.py`, then `driver.py` or `connect.py`.
"""
