"""One file a policy, named as the policy is; a user's own file looks the same."""
