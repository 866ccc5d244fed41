"""What `keelman doctor` looks at: each room judges what it is given, and says what is wrong with its remedy."""
