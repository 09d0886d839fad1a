"""How many questions each encoding of numbers needs to learn 8-bit products."""
