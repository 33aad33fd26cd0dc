"""The Spark applications of the demo, and the events that they tell."""
