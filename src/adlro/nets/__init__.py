"""The networks of the learned policies: inference in compiled code, without torch."""
