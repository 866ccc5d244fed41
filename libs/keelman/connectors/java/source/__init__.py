"""Java source tasks: the thread that one lives in, what is done with its polls, and its offsets."""
