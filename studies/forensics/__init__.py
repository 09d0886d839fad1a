"""What the wrong answers in the paper's raw responses are equal to."""
