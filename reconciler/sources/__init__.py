"""Every source of maintenance: to add one, add its file or folder, and a line here.

The lines are in the order of a node's readings in reports. They are text, so that a program that needs a file
of one source, such as the node agent, loads no other.
"""

SOURCES = (
    "condition:AksConditions",
    "imds:PublishedEvents",
    "request.source:Requests",
    "condition:NamedConditions",
    "arm.source:ArmPlans",
    "aws.source:Ec2Events",
    "esx.labels:EsxHosts",
    "esx.vcenter:VCenterHosts",
    "kubernikus:KubeletVersions",
)
