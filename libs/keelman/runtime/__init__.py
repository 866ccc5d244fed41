"""The base of every process: settings, supervision, reconcilers, back-off, logging, child processes."""
