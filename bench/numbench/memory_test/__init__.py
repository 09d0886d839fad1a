"""Memory tests: does a model answer a public dataset better than fresh items of equal difficulty?

A memory test is a folder with two runs of a model, on the frozen dataset and on fresh items, and
`certificate.json`: the rule of the verdict, registered before the first question.
"""
