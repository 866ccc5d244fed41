"""Checks the destinations of log delivery that users choose."""

from __future__ import annotations

import re

from keelman.model.errors import InvalidArgument
from keelman.model.log_delivery import LogDelivery
from keelman.model.topic import checked_topic

MAX_CHARACTERS = 512
_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")
_GROUP = re.compile(r"[A-Za-z0-9._/#-]+")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"[A-Za-z0-9!_.*'()=/:@+,-]*")
_FOLDERS = "without empty folders, '.' and '..'"


def check_log_delivery(field: str, log_delivery: LogDelivery) -> None:
    """Raises InvalidArgument for a part that is enabled without a target, and for names that no target can have."""
    if log_delivery.name and (not _NAME.fullmatch(log_delivery.name) or log_delivery.name in (".", "..")):
        raise InvalidArgument.of(f"{field}.name", log_delivery.name, "1 to 128 letters, digits, '.', '_' and '-'")
    if (file := log_delivery.file) is not None and (file.group or file.enabled):
        legal = f"1 to {MAX_CHARACTERS} letters, digits, '.', '_', '-', '#' and '/', {_FOLDERS}"
        _check(f"{field}.file.group", file.group, _GROUP, legal)
        _check_folders(f"{field}.file.group", file.group, legal)
    if (s3 := log_delivery.s3) is not None and (s3.bucket or s3.prefix or s3.enabled):
        _check(f"{field}.s3.bucket", s3.bucket, _BUCKET, "3 to 63 lower-case letters, digits, '.' and '-'")
        legal = f"at most {MAX_CHARACTERS} letters, digits and !_.*'()=/:@+,- {_FOLDERS}"
        _check(f"{field}.s3.prefix", s3.prefix, _PREFIX, legal)
        if s3.prefix:
            _check_folders(f"{field}.s3.prefix", s3.prefix, legal)
    if (kafka := log_delivery.kafka) is not None and (kafka.topic or kafka.enabled):
        checked_topic(f"{field}.kafka.topic", kafka.topic)


def _check(field: str, value: str, pattern: re.Pattern[str], legal: str) -> None:
    if len(value) > MAX_CHARACTERS or not pattern.fullmatch(value):
        raise InvalidArgument.of(field, value, legal)


def _check_folders(field: str, value: str, legal: str) -> None:
    """Raises InvalidArgument where a value would lead out of its root as a path of folders. A '/' at either end has no
    meaning."""
    folders = value.strip("/").split("/")
    if any(folder in ("", ".", "..") for folder in folders):
        raise InvalidArgument.of(field, value, legal)
