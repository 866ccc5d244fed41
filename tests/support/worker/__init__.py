"""What tests of workers share: worker processes alone and in groups, and requests to them."""
