"""The OpenAPI document of the Ohara API, built from the tables of settings that also check requests."""
