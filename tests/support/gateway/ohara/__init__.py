"""What tests of the Ohara API share."""
