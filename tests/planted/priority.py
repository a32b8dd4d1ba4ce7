"""Priorities of priority/multifactor: whole numbers of age, job size and partition.

As Slurm's page on the plugin has it (https://slurm.schedmd.com/priority_multifactor.html), with
PriorityFavorSmall=NO: the size factor is the mean of a job's shares of nodes and of CPUs, and the
partition factor is PriorityJobFactor by the largest of all partitions.
"""


class Priorities:
    """The priorities of a site's jobs under some weights."""

    def __init__(self, site, weights):
        self.weights = weights
        self.nodes = len(site.nodes)
        self.cpus = sum(node.cores for node in site.nodes)
        highest = max(part.job_factor for part in site.partitions)
        self.factors = {part.name: part.job_factor / highest for part in site.partitions}

    def fixed(self, job):
        """What does not change while a job waits: the weighted size and partition."""
        size = (job.nodes / self.nodes + job.gpus * job.cores / self.cpus) / 2
        return self.weights.size * size + self.weights.partition * self.factors[job.partition]

    def at(self, job, now, fixed=None):
        """The priority of a waiting job at a moment, 1 at least."""
        age = min((now - job.submit) / self.weights.max_age, 1.0)
        own = self.fixed(job) if fixed is None else fixed
        return max(1, int(self.weights.age * age + own))
