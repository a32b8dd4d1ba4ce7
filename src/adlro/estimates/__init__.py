"""Run-time estimators, one module for each; simulations, histories and live clusters share them."""
