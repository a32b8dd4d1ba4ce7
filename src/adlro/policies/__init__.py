"""One file a policy, named as the policy is; the registry finds them. A user's own looks the same."""
