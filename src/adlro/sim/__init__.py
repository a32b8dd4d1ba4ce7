"""The compiled simulator: world state, event loop, rollouts on copies. Imports no policy."""
