"""Jobs as patterns of packed bits, and a memory of what became of patterns like them.

schema: roles and how many bits each has. encode_kernel: a job's fillers -> bits. memory,
learn_kernel, recall_kernel: an associative memory with a bound. speeds_kernel: how much faster one
GPU model is than another. unbind_kernel: which part of a pattern matched. sketch_kernel: many jobs
in one row of counters. saved: the memory as a file.
"""
