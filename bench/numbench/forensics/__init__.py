"""Which other computation do wrong answers equal, and does float64 arithmetic show in the answers?

    answers and questions → alternative values → matches → counts and expectation → findings

`computations` gives the values of other computations, `agreement` says which answers agree with a
value, `chance` how many would by chance. `calculator` weighs the evidence of float64 arithmetic.
`findings` counts the wrong answers of one run, and says the results in a sentence; reports show
them.
"""
