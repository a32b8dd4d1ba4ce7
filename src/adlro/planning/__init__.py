"""Pure functions of a view that policies plan with: plans, drain cost, assignment, programs."""
