"""What the state service keeps, one file a noun: its row, its messages, its checks and its verbs."""
