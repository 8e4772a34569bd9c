"""What the processor needs to call the fused operations of a step."""
