"""Small files in the format of Alibaba's openb trace."""

from openb_placement import openb

NODES = "sn,cpu_milli,memory_mib,gpu,model"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec"


def write(folder, nodes, pods, heads=(NODES, PODS)):
    """Write a node file and a pod file with these rows; return their paths."""
    paths = folder / "nodes.csv", folder / "pods.csv"
    for path, head, rows in zip(paths, heads, (nodes, pods), strict=True):
        path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return paths


def trace(folder, nodes, pods):
    """Return the trace of files with these rows."""
    return openb.read(*write(folder, nodes, pods))
