"""How large the project is, beside ceilings that only a commit with a reason raises."""
