"""Which other computation do wrong answers equal, and does float64 arithmetic show in the answers?

    answers and questions → alternative values → matches → counts and expectation → findings

`evaluation` and `alternatives` give the values of other computations, `agreement` says which
answers agree with a value, `chance` how many would by chance. `explanations` counts the wrong
answers, and `calculator` weighs the evidence of float64 arithmetic. `findings` has the results of
one run, and says them in a sentence; reports show them.
"""
