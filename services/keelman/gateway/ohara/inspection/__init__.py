"""`/v0/inspect` and `/v0/validate`: what may be set, what is loaded, and whether a configuration is legal."""
