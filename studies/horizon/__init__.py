"""Problem size at 50% success, from the responses that the paper published."""
