"""The wire: requests and answers in Ohara's form, its keys, types, errors and messages. It knows no service."""
