"""What tests of the state service share: the service, nodes, and the verbs of its nouns in short."""
