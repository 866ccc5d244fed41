"""The common base of the tests of the Ohara API."""
