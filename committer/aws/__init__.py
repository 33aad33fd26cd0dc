"""AWS clients, what their errors mean, and how they get access."""
