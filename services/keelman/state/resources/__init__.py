"""The parts that nouns share: rows, services, checks, annotations and common messages of the wire."""
