"""The command line in tests: as a user starts it, and many commands in one process."""
