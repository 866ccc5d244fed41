"""The number of workers follows what they have to do."""
