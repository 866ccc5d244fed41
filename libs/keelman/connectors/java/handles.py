"""Composes Java's method handles: loops over whole lists that run inside Java, without a line of Java source.

A call from Python into Java takes some microseconds, so that a call a record would cost more than the record. Java
compiles the composed handles like code written in Java.
https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/lang/invoke/MethodHandles.html
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from keelman.connectors.java.jvm import java_class, jpype


class Handles:
    """Finds methods and composes them. `Handle` below is a `java.lang.invoke.MethodHandle`; the machine runs."""

    def __init__(self) -> None:
        self.of = java_class("java.lang.invoke.MethodHandles")
        self._type = java_class("java.lang.invoke.MethodType")
        self._lookup: Any = self.of.publicLookup()
        self.object = java_class("java.lang.Object")
        self.string = java_class("java.lang.String")
        self.iterable = java_class("java.lang.Iterable")
        self.void, self.bool, self.int, self.long, self.char = (
            java_class(f"java.lang.{name}").TYPE for name in ("Void", "Boolean", "Integer", "Long", "Character")
        )
        self.bytes: Any = jpype().JArray(jpype().JByte)

    @cached_property
    def none(self) -> Any:
        """Returns null, for Java's parameters that accept no handle."""
        return jpype().JObject(None, java_class("java.lang.invoke.MethodHandle"))

    def type(self, returned: Any, *parameters: Any) -> Any:
        """Returns the type of a handle."""
        return self._type.methodType(returned, list(parameters))

    def method(self, owner: Any, name: str, returned: Any, *parameters: Any) -> Any:
        """(owner, parameters) -> returned"""
        return self._lookup.findVirtual(owner, name, self.type(returned, *parameters))

    def static(self, owner: Any, name: str, returned: Any, *parameters: Any) -> Any:
        """(parameters) -> returned"""
        return self._lookup.findStatic(owner, name, self.type(returned, *parameters))

    def constructor(self, owner: Any, *parameters: Any) -> Any:
        """(parameters) -> owner"""
        return self._lookup.findConstructor(owner, self.type(self.void, *parameters))

    def constant(self, kind: Any, value: Any, *dropped: Any) -> Any:
        """(dropped) -> kind, always this value; null for None."""
        handle = self.of.zero(kind) if value is None else self.of.constant(kind, value)
        return self.of.dropArguments(handle, 0, list(dropped))

    def retyped(self, handle: Any, returned: Any, *parameters: Any) -> Any:
        """Returns a handle with casts to another type."""
        return handle.asType(self.type(returned, *parameters))

    def then(self, handle: Any, after: Any) -> Any:
        """Composes two handles: the second gets the first one's result."""
        return self.of.filterReturnValue(handle, after)

    def spread(self, handle: Any, parameters: Sequence[Any], *places: int) -> Any:
        """(parameters) -> the handle's result, with the parameters at these places as its arguments."""
        return self.of.permuteArguments(handle, self.type(handle.type().returnType(), *parameters), list(places))

    def is_null(self, kind: Any) -> Any:
        """(kind) -> boolean"""
        test = self.static(java_class("java.util.Objects"), "isNull", self.bool, self.object)
        return self.retyped(test, self.bool, kind)

    def unless_null(self, handle: Any) -> Any:
        """The handle of one argument, or null for null."""
        kind, returned = handle.type().parameterType(0), handle.type().returnType()
        return self.of.guardWithTest(self.is_null(kind), self.constant(returned, None, kind), handle)

    def for_each(self, body: Any, *context: Any) -> Any:
        """(Iterable, context) -> void, where the body is (an element, context) -> void."""
        element = body.type().parameterType(0)
        body = self.retyped(body, self.void, self.object, *context) if element != self.object else body
        return self.of.iteratedLoop(self.none, self.none, self.of.dropArguments(body, 1, [self.iterable]))

    def grouping(self, key: Any, *context: Any) -> Any:
        """(an element, Map, context) -> void: adds it to the list that the map has under its key, which (an element,
        context) -> key gives. The list is made where it is not there; a key may be null."""
        maps, collection = java_class("java.util.Map"), java_class("java.util.Collection")
        function = java_class("java.util.function.Function")
        handle = self.of.dropArguments(self.constructor(java_class("java.util.ArrayList")), 0, [self.object])
        proxies = java_class("java.lang.invoke.MethodHandleProxies")
        new_list = proxies.asInterfaceInstance(function, self.retyped(handle, self.object, self.object))
        find = self.method(maps, "computeIfAbsent", self.object, self.object, function)
        find = self.retyped(self.of.insertArguments(find, 2, [new_list]), collection, maps, self.object)
        add = self.retyped(self.method(collection, "add", self.bool, self.object), self.void, collection, self.object)
        element = key.type().parameterType(0)
        put = self.of.collectArguments(add, 0, find)  # (Map, key, element)
        put = self.retyped(put, self.void, maps, key.type().returnType(), element)
        put = self.of.collectArguments(put, 1, key)  # (Map, element, context, element)
        behind = range(2, 2 + len(context))
        return self.spread(put, [element, maps, *context], 1, 0, *behind, 0)


def call(handle: Any, *arguments: Any) -> Any:
    """Calls a handle. A list among the arguments stays one argument."""
    library = jpype()
    return handle.invokeWithArguments(library.JArray(library.JObject)(list(arguments)))
