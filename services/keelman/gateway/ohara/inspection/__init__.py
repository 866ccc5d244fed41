"""`/v0/inspect` and `/v0/validate`: the legal settings, the loaded classes, and the validation of configurations."""
