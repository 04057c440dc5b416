"""What others are shown: annotations of drainsafe, node conditions, NodeMaintenance objects."""
