"""One file per policy, named as the policy is; a user's own policy file looks the same."""
