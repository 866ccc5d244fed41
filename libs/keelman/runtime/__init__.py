"""What every process needs to live: settings, supervision, reconcilers, back-off, logging, child processes."""
