"""What tests of copying share: copy runs, and files that grow."""
