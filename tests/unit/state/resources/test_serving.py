"""Pages of lists, in ascending and descending order of names."""

from keelman.api.connect.v1.operation_service_pb2 import ListOperationsRequest
from keelman.state.resources.serving import newest_page, page_of

NAMES = [f"op-{number}" for number in range(7)]
KNOWN = {name: name for name in NAMES}


def test_the_newest_first_page_by_page() -> None:
    pages, token = [], ""
    while True:
        part, token = newest_page(NAMES, KNOWN, ListOperationsRequest(page_size=3, page_token=token))
        pages.append(part)
        if not token:
            break
    assert pages == [["op-6", "op-5", "op-4"], ["op-3", "op-2", "op-1"], ["op-0"]]


def test_a_page_goes_on_where_the_last_one_was_gone_or_new_ones_came() -> None:
    part, token = newest_page(NAMES, KNOWN, ListOperationsRequest(page_size=2))
    assert part == ["op-6", "op-5"]
    names = [name for name in [*NAMES, "op-7"] if name != "op-5"]
    part, token = newest_page(names, {name: name for name in names}, ListOperationsRequest(page_token=token))
    assert (part, token) == (["op-4", "op-3", "op-2", "op-1", "op-0"], "")


def test_only_what_is_wanted() -> None:
    part, token = newest_page(NAMES, KNOWN, ListOperationsRequest(page_size=2), lambda name: int(name[-1]) % 3 == 0)
    assert part == ["op-6", "op-3"]
    assert newest_page(NAMES, KNOWN, ListOperationsRequest(page_token=token), lambda name: name == "op-0")[0] == [
        "op-0"
    ]
    assert page_of(NAMES, KNOWN, ListOperationsRequest(page_size=2))[0] == ["op-0", "op-1"]
