"""The cost of each test file: seconds on the clock and of the processors, of its set-up and of its tests."""
