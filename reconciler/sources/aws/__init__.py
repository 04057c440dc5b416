"""Events that EC2 announces."""
