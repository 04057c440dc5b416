"""Real nodes: the image on containerd, runc and kubelets, in namespaces of their own; see CONTRIBUTING.md.

Nothing here imports the program: what it does is judged from outside.
"""
