"""The HTML report of a comparison and Gantt charts; the only package that imports plotly."""
