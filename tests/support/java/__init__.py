"""What tests of Java plugins share: connectors to compile, published ones, what they copy from and to."""
