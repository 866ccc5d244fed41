"""The nouns that the state service keeps, one file each: its row, its messages, its checks and its verbs."""
