"""How many bytes a copy run may have on the way to the brokers, by its recent deliveries."""

import pytest

from keelman.engine.producing.send_window import FIRST_BYTES, REQUEST_BYTES, SURE_BYTES, SendWindow

MOST = 12 << 20


def steady(rate: int, seconds: int = 60) -> SendWindow:
    """A window after some time at so many bytes a second."""
    send_window = SendWindow(MOST)
    for tenth in range(seconds * 10):
        send_window.delivered(rate // 10, tenth / 10)
    return send_window


def test_it_begins_small_and_may_be_slow() -> None:
    send_window = SendWindow(MOST)
    assert (send_window.most_bytes(5.0), send_window.read_bytes(5.0), send_window.is_slow(5.0)) == (
        FIRST_BYTES,
        FIRST_BYTES,
        True,
    )


@pytest.mark.parametrize("rate", [500_000, 1_000_000, 5_000_000])
def test_in_the_long_run_it_is_what_gets_out_in_a_second(rate: int) -> None:
    assert steady(rate).most_bytes(60.0) == pytest.approx(rate, rel=0.02)


@pytest.mark.parametrize("quota", [20_000, 100_000, 700_000, 5_000_000])
def test_a_burst_that_a_quota_lets_pass_does_not_open_it_beyond_the_quota(quota: int) -> None:
    send_window = SendWindow(MOST)
    send_window.delivered(10 * quota, 0.1)
    assert send_window.most_bytes(0.2) <= max(FIRST_BYTES, quota)


def test_a_fast_target_opens_it_wholly_within_so_many_full_windows() -> None:
    send_window, turns = SendWindow(MOST), 0
    while send_window.most_bytes(turns * 0.005) < MOST:
        send_window.delivered(send_window.most_bytes(turns * 0.005), turns * 0.005)
        turns += 1
    assert turns < 80
    assert send_window.read_bytes(turns * 0.005) is None
    assert not send_window.is_slow(turns * 0.005)


def test_what_was_delivered_long_ago_no_longer_counts() -> None:
    window = steady(5_000_000)
    assert window.most_bytes(70.0) < window.most_bytes(60.0) / 2
    assert window.most_bytes(200.0) == FIRST_BYTES


def test_no_more_than_it_is_given_at_most() -> None:
    send_window = SendWindow(20_000)
    assert (send_window.most_bytes(0.0), send_window.read_bytes(0.0)) == (20_000, 20_000)


def test_who_was_held_back_ends_a_transaction_when_it_is_worth_a_request() -> None:
    window = steady(700_000)
    assert (window.is_slow(60.0), window.read_bytes(60.0)) == (False, window.most_bytes(60.0) // 2)
    window.held_back(60.0)
    assert (window.is_slow(61.0), window.enough_bytes(61.0), window.read_bytes(61.0)) == (
        True,
        REQUEST_BYTES,
        REQUEST_BYTES,
    )
    assert window.most_bytes(65.0) > SURE_BYTES
    open_wide = steady(20_000_000)
    open_wide.held_back(60.0)
    assert not open_wide.is_slow(61.0), "a fully open window sends soon enough"


def test_a_quota_that_holds_back_for_long_is_remembered_from_its_end() -> None:
    window = steady(2_000_000)
    window.held_back(64.0)
    window.held_back(61.0)
    assert window.is_slow(73.9)
