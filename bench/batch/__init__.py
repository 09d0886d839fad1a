"""The tasks of `bench.tasks`, thousands of questions at a time.

Everything here gives, row for row and byte for byte, what the plain code in `bench.tasks` gives;
that code is the definition, this is its speed. The tests hold the two against each other.
"""
