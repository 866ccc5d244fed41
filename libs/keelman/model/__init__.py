"""The nouns of the product: ids, states, transitions and errors. Standard library only; no I/O and no clock."""
