"""The OpenAPI document of the Ohara API, made from the tables of settings by which requests are checked."""
