"""What tests of the managed Connect API share."""
