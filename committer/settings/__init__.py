"""Settings: which there are, their defaults, and the files and variables that they are read from.

Spark drivers share all of it but `service_settings`. No adapter and no plan imports this.
"""
