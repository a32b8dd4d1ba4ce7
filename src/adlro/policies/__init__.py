"""Policies, one file each, named after the policy; a user's own policy file has the same form."""
