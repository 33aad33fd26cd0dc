"""The systems beside us: programs that commit the same files with Iceberg Java and PyIceberg."""
