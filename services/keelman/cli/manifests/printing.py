"""Prints plans for people and for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from keelman.cli.manifests.plan import CHANGED, CREATED, REMOVED, SAME, ApplyPlan, Item
from keelman.cli.output.printing import on_one_line

MARKS = {CREATED: "+", CHANGED: "~", REMOVED: "-"}
WORDS = {CREATED: "to create", CHANGED: "to change", REMOVED: "to remove", SAME: "unchanged"}


def lines(plan: ApplyPlan) -> Iterator[str]:
    """Yields a plan for people: each resource with its changed fields, then the counts."""
    for item in plan.changes:
        yield f"{MARKS[item.action]} {item.title}{_goal(item)}"
        for change in item.changes:
            new = _text(change.wanted)
            yield f"    {change.field}: " + (new if item.present is None else f"{_text(change.former)} -> {new}")
    yield counts(plan)


def counts(plan: ApplyPlan) -> str:
    """Returns how many resources the plan creates, changes and removes, and how many already match their files."""
    counter = Counter(item.action for item in plan.items)
    return (
        ", ".join(f"{counter[action]} {text}" for action, text in WORDS.items() if counter[action]) or "nothing to do"
    )


def document(plan: ApplyPlan) -> dict[str, Any]:
    """Returns a plan for programs."""
    return {
        "items": [
            {
                "kind": item.form.kind.singular,
                "name": item.name,
                "action": item.action,
                "changes": [{"field": c.field, "from": c.former, "to": c.wanted} for c in item.changes],
            }
            for item in plan.items
        ]
    }


def _goal(item: Item) -> str:
    return f" ({item.goal})" if item.action == CREATED and item.goal else ""


def _text(value: Any) -> str:
    if value is None:
        return "(none)"
    return on_one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)) or '""'
