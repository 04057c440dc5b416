"""How much somebody has to know to change a thing, in figures."""
