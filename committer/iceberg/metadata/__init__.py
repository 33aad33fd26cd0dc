"""Table metadata: the model, its JSON form, and the rules that it keeps."""
