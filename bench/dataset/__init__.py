"""What is kept of the questions: dataset folders, their generation, and the audit of labels."""
