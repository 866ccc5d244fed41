"""The main job: a real file copied file -> topic -> file through every part of the system, and verified."""
