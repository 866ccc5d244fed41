"""Third-party plugins: found below plugin.path, and run in separate processes."""
