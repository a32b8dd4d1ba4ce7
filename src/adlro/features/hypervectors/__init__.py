"""Jobs as hypervectors (patterns of packed bits), and an associative memory of their run times.

schema: the roles and the number of bits of each. encode_kernel: a job's fillers to bits. memory,
learn_kernel, recall_kernel: an associative memory of bounded size. speeds_kernel: the relative
speeds of GPU models. unbind_kernel: which roles of two patterns match, and explain: the same in
words. sketch_kernel: many jobs in one row of counters. saved: the memory as a file.
"""
