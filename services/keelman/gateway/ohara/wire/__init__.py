"""The wire: requests and answers as Ohara has them, its keys, types, errors and sentences. It knows no service."""
