"""Every pattern that is not written in our source is named here, with the reason why it cannot hold a process up."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from support.places import ROOT
from unit.repository.test_tidy import modules, parsed

FUNCTIONS = {"compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
CALLERS = "a caller's, as Java has it and in bounded time"
THE_BOUND = "where that time is bounded"
GLOB = "a caller's, of which only * and ? are special: Python tries no part of such a pattern twice"
ESCAPED = "a text of ours or a caller's, escaped"
OURS = "ours, from a table"
PLACES: dict[str, dict[str, str]] = {
    "libs/keelman/connect/config/connector_keys.py": {
        "JavaPattern(value or '')": CALLERS,
    },
    "libs/keelman/connect/config/providers.py": {
        "JavaPattern(parameters.get(cls.parameter, '.*'))": CALLERS,
        "fnmatchcase(name, pattern)": GLOB,
        "fnmatchcase(bound, pattern)": GLOB,
    },
    "libs/keelman/connect/config/references.py": {
        "re.compile('|'.join(map(re.escape, longest_first)))": ESCAPED,
    },
    "libs/keelman/connect/config/secret_keys.py": {
        "re.compile('(?:^|://|=|\\\\\")' + re.escape(HIDDEN) + '(?:$|[@&;\\\\s\\\\\"])')": ESCAPED,
    },
    "libs/keelman/connect/converters/json_data.py": {
        "re.compile(f'(?:[\\\\x00-\\\\x20]*(?:{_PIECE.pattern}))*[\\\\x00-\\\\x20]*')": OURS,
    },
    "libs/keelman/connect/java/bounded_match.py": {
        "re.compile(translated, re.ASCII)": THE_BOUND,
    },
    "libs/keelman/connect/java/dates.py": {
        "re.compile(text)": OURS,
        "re.compile(f'-?\\\\d{{1,{count}}}' if abutting else '-?\\\\d+')": OURS,
        "re.compile(form)": OURS,
    },
    "libs/keelman/connect/java/regex.py": {
        "BoundedPattern(_Translator(pattern, flags).whole(), pattern)": THE_BOUND,
    },
    "libs/keelman/connect/policy/policy.py": {
        "fnmatchcase(text, pattern.replace('[', '[[]').replace('?', '[?]'))": GLOB,
    },
    "libs/keelman/connect/topic_creation.py": {
        "JavaPattern('|'.join(patterns))": CALLERS,
        "JavaPattern(pattern)": CALLERS,
    },
    "libs/keelman/connect/transforms/predicates.py": {
        "JavaPattern(self.config['pattern'])": CALLERS,
    },
    "libs/keelman/connect/transforms/routing.py": {
        "JavaPattern(value)": CALLERS,
        "JavaPattern(self.config['regex'])": CALLERS,
    },
    "libs/keelman/connectors/file/rotated_files.py": {
        "re.fullmatch(pattern, name)": OURS,
    },
    "libs/keelman/connectors/mirror/policy.py": {
        "JavaPattern(joined)": CALLERS,
    },
    "libs/keelman/connectors/validation/rules.py": {
        "JavaPattern(pattern)": CALLERS,
    },
    "libs/keelman/engine/dead_letters/reader.py": {
        "re.compile(f'^Caused by: {re.escape(SerializationError.java_name)}: (.+)$', re.MULTILINE)": ESCAPED,
    },
    "libs/keelman/engine/sink/consumer/subscription.py": {
        "JavaPattern(pattern)": CALLERS,
    },
    "libs/keelman/engine/sink/target.py": {
        "JavaPattern(config.get('topics.regex', '').strip() or '(?!)')": CALLERS,
    },
    "libs/keelman/runtime/logs/parts.py": {
        "re.compile(re.escape(file.name) + '\\\\.(-?\\\\d+)_(-?\\\\d+)\\\\.gz')": ESCAPED,
    },
    "libs/keelman/runtime/processes/environment.py": {
        "fnmatchcase(name, pattern)": GLOB,
    },
    "libs/keelman/workers/plugins/wheel_metadata.py": {
        "re.search(f'^class\\\\s+{re.escape(cls)}\\\\b.*\\\\n', text, re.MULTILINE)": ESCAPED,
    },
    "libs/keelman/workers/properties/access.py": {
        "JavaPattern(pattern, 'i')": CALLERS,
    },
    "services/keelman/agent/shipping/lines.py": {
        "re.compile(b' worker_cluster=' + re.escape(worker_cluster.encode()) + b'(?: |$)')": ESCAPED,
    },
    "services/keelman/broker/old_self.py": {
        "re.search(FENCED % re.escape(node_id.to_bytes(4, 'big')), written, re.DOTALL)": ESCAPED,
    },
    "services/keelman/cli/machine/joined.py": {
        "re.compile(f\"({'|'.join(SETTINGS)})\\\\s*=\")": OURS,
    },
    "services/keelman/cli/manifests/texts.py": {
        "re.compile(f'^(?:{pattern})$')": OURS,
    },
    "services/keelman/gateway/access/signatures.py": {
        "re.search(f'Credential=[^/,]+/[0-9]+/([a-z0-9-]{{1,32}})/{service}/', sent.headers.get('au": OURS,
    },
    "services/keelman/gateway/managed_connect/member_shapes.py": {
        "re.fullmatch(self.pattern, value)": OURS,
    },
    "services/keelman/gateway/ohara/wire/values.py": {
        "re.fullmatch(setting.regex.removesuffix('$'), text)": OURS,
    },
    "services/keelman/gateway/web.py": {
        "re.compile(mount.path_regex.pattern, re.DOTALL)": OURS,
    },
}


def _patterns(file: Path) -> Iterator[str]:
    """Calls of a module, cut short, that compile or match a pattern that depends on a variable."""
    for node in ast.walk(parsed(file)):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        module, _, function = called.rpartition(".")
        if module == "re" and function in FUNCTIONS:
            varies = node.args and any(map(_is_variable, _names(node.args[0])))
        else:
            varies = called in ("JavaPattern", "BoundedPattern", "fnmatchcase", "fnmatch", "fnmatch.translate")
        if varies:
            yield ast.unparse(node)[:90]


def _names(node: ast.AST) -> Iterator[str]:
    """Names in an expression."""
    for child in ast.walk(node):
        if isinstance(child, (ast.Name, ast.Attribute)):
            yield child.id if isinstance(child, ast.Name) else child.attr


def _is_variable(name: str) -> bool:
    return name.lstrip("_") != name.lstrip("_").upper()


def test_every_pattern_that_is_not_in_the_source_is_named() -> None:
    found = {(str(file.relative_to(ROOT)), call) for file in modules() for call in _patterns(file)}
    named = {(file, call) for file, calls in PLACES.items() for call in calls}
    assert found - named == set(), "a new one: if it is a caller's, it must be a JavaPattern"
    assert named - found == set(), "these are gone"
