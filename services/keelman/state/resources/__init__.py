"""The parts that nouns are made of: rows, services, checks, annotations and what several of them have on the wire."""
