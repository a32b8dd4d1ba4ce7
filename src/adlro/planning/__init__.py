"""Planning functions shared by policies: plans, drain cost, matching, linear programs."""
