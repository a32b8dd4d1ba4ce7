"""The placement of a job by a scan of all nodes, by the rules of docs/simulator.md."""

from adlro.model.state import WHOLE


def scan(want, p, layout):
    """The GPUs that a job gets by a scan of all nodes (docs/simulator.md), or None."""
    first = int(layout.pools["first_node"][p])
    own = range(first, first + int(layout.pools["nodes"][p]))
    free_gpus, machines = layout.gpus["free"].tolist(), layout.nodes
    hosting = [
        n
        for n in own
        if machines["up"][n]
        and machines["free_cores"][n] >= want["cores"]
        and machines["free_memory"][n] >= want["memory"]
    ]
    if want["share"] < WHOLE:
        able = [
            (free_gpus[g], g)
            for n in hosting
            for g in range(machines["first_gpu"][n], machines["first_gpu"][n] + machines["gpus"][n])
            if free_gpus[g] >= want["share"] and layout.gpus["free_memory"][g] >= want["gpu_memory"]
        ]
        return [int(min(able)[1])] if able else None
    left = {n: whole_room(want, machines[n]) for n in hosting}
    return scan_gang(want, left, layout)


def whole_room(want, node):
    """The number of GPUs of a gang for which a node has free GPUs, cores and memory."""
    limits = [int(node["free"])]
    limits += [int(node["free_cores"] // want["cores"])] if want["cores"] else []
    limits += [int(node["free_memory"] // want["memory"])] if want["memory"] else []
    return min(limits)


def scan_gang(want, left, layout):
    """Best fit over the nodes, given the rest of the gang."""
    wanted, gang = int(want["gpus"]), []
    if sum(left.values()) < wanted:
        return None
    while wanted > 0:
        whole = [n for n in left if left[n] >= wanted]
        if whole:
            chosen = min(whole, key=lambda n: (layout.nodes["free"][n], n))
        else:
            chosen = max(left, key=lambda n: (left[n], -n))
        count = min(wanted, left.pop(chosen))
        first, gpus = layout.nodes[chosen][["first_gpu", "gpus"]]
        free = [g for g in range(first, first + gpus) if layout.gpus["free"][g] == WHOLE]
        gang += free[:count]
        wanted -= count
    return gang
