"""Cases for transforms, predicates and converters: the inputs. The notation is described in record_data.py."""

from __future__ import annotations

from recorded.data import data_cases_converters as converters
from recorded.data import data_cases_json as texts
from recorded.data import data_cases_literals as literal
from recorded.data import data_cases_records as records
from recorded.data import data_cases_texts as hard
from recorded.data import data_cases_times as times
from recorded.data import data_cases_values as values
from recorded.data.data_notation import Case

_MAKERS = {
    "cast": values.cast,
    "converter": converters.converters,
    "extract": values.extract,
    "far-times": times.far_times,
    "flatten": values.flatten,
    "hard-texts": hard.hard_texts,
    "header-converter": converters.header_converters,
    "headers": records.headers,
    "hoist": values.hoist,
    "insert": values.insert,
    "mask": values.mask,
    "json-of-others": texts.of_others,
    "literals": literal.literals,
    "metadata": records.metadata,
    "predicate": records.predicates,
    "reader": converters.readers,
    "schema-content": converters.with_schema_content,
    "replace": values.replace,
    "route": records.route,
    "timestamp": records.timestamps,
    "to-key": values.to_key,
}


def everything() -> list[Case]:
    """All cases, each with a name of its own."""
    cases: list[Case] = []
    for kind, make in sorted(_MAKERS.items()):
        cases += [{"name": f"{kind}-{number}", **case} for number, case in enumerate(make())]
    return cases
