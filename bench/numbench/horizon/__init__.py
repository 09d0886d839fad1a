"""The horizon of a model on a task: the size of the questions at which it starts to fail."""
