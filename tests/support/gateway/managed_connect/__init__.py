"""The common base of the tests of the managed Connect API."""
