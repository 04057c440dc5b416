# The base of the published image. A release takes the digest that its tag has on that day, unless it has one here:
# `nox -s release -- base` prints it. Dependabot keeps a digest current. Its Python is the one that Dockerfile names.
FROM docker.io/library/python:3.11-slim
