"""A copy run's reports on its pace."""

from keelman.api.copy.v1.copy_run_pb2 import LAG_UNIT_BYTES, LAG_UNIT_RECORDS
from keelman.engine.progress import Progress
from keelman.rpc.times import from_duration


def test_there_is_news_until_the_rate_has_fallen_to_nothing():
    progress = Progress(now=0.0)
    progress.message(0, LAG_UNIT_RECORDS, now=0.5)
    assert not progress.news(0)
    progress.commit(100, 1000, {}, now=1.0)
    rates = []
    for second in range(1, 20):
        if not progress.news(0):
            break
        rates.append(progress.message(0, LAG_UNIT_RECORDS, now=float(second)).records_per_second)
    assert rates[0] > 0
    assert rates[-1] == 0.0
    assert not progress.news(0)


def test_another_lag_is_news():
    progress = Progress(now=0.0)
    progress.message(0, LAG_UNIT_RECORDS, now=1.0)
    assert not progress.news(0)
    assert progress.news(7)
    assert progress.message(7, LAG_UNIT_RECORDS, now=2.0).lag == 7


def test_a_burst_after_an_hour_is_not_spread_over_the_hour():
    progress = Progress(now=0.0)
    progress.message(0, LAG_UNIT_RECORDS, now=1.0)
    progress.commit(500, 5000, {}, now=3600.0)
    message = progress.message(0, LAG_UNIT_RECORDS, now=3600.0)
    assert message.records_per_second == 500
    assert message.bytes_per_second == 5000


def test_the_time_left_goes_by_what_the_lag_counts_not_by_the_bytes_in_kafka():
    progress = Progress(now=0.0)
    progress.message(10_000, LAG_UNIT_BYTES, now=0.0)
    progress.commit(10, 4000, {}, passed=1000, now=1.0)
    message = progress.message(9000, LAG_UNIT_BYTES, now=1.0)
    assert (message.bytes_per_second, from_duration(message.remaining_time)) == (4000, 9.0)


def test_the_time_left_of_records_goes_by_records():
    progress = Progress(now=0.0)
    progress.message(100, LAG_UNIT_RECORDS, now=0.0)
    progress.commit(10, 4000, {}, now=1.0)
    assert progress.message(90, LAG_UNIT_RECORDS, now=1.0).remaining_time.ToMilliseconds() == 9_000
    progress.commit(0, 0, {}, passed=20, now=2.0)  # only bad records
    assert progress.message(70, LAG_UNIT_RECORDS, now=2.0).remaining_time.ToMilliseconds() == 4_666
