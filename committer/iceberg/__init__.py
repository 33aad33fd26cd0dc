"""The Apache Iceberg table format as values and bytes: pure, no I/O, no clock, no chance."""
