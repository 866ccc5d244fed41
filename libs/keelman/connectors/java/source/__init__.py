"""Java source tasks: the thread of a task, the handling of its polls, and its offsets."""
