"""The catalog in one DynamoDB table, in the layout of Java's DynamoDB catalog."""
