"""Third-party plugins: found below plugin.path, and asked in processes of their own."""
