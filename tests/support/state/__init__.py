"""The common base of the state service's tests: the service, nodes, and the verbs of its nouns in short."""
