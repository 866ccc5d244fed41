"""The nouns that the state service keeps, one file each: its messages, its checks and its verbs."""
