"""The root file system of the image: what is collected, what is left out, and how large each part is."""
