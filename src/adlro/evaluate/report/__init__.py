"""Pictures of results; the only home of plotly."""
