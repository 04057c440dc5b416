"""Azure: planned maintenance (ARM) and agent pools (AKS)."""
