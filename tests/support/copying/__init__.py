"""The common base of the tests of copying: copy runs, and files that grow."""
