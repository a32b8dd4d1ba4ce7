"""Inference of the learned policies' networks in compiled code, without torch."""
