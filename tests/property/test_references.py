"""For any values, stored tasks contain the references again, and resolve to the connector's values."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keelman.connect.config.references import ConfigReference, references, resolved, restored

NAMES = st.text("abc/._-", min_size=1, max_size=5)
REFERENCES = st.builds(ConfigReference, NAMES, st.one_of(st.just(""), NAMES), NAMES)
VALUES = st.dictionaries(REFERENCES, st.text("abc12 =", max_size=12), max_size=4)
PLAIN = st.text("abc12 =$", max_size=12)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(VALUES, st.data())
def test_stored_tasks_resolve_to_what_the_connector_said(
    values: dict[ConfigReference, str], data: st.DataObject
) -> None:
    item = st.sampled_from([str(r) for r in values]) if values else PLAIN
    texts = st.lists(st.one_of(PLAIN, item), max_size=3).map("".join)
    connector = data.draw(st.dictionaries(NAMES, texts, max_size=4))
    whole = resolved(connector, values)
    task = {**whole, **data.draw(st.dictionaries(NAMES, PLAIN.map(lambda t: t.replace("$", "")), max_size=3))}
    (stored,) = restored([task], connector, values)
    assert resolved(stored, values) == task
    for key, text in connector.items():
        if references(text) and task[key] == whole[key]:
            assert stored[key] == text
