"""The common base of the tests of Java plugins: connectors to compile, published ones, their sources and targets."""
