"""Turns a Java task's records into bytes and back: transforms, predicates, converters, under the error policy."""
