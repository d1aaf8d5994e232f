"""What `undeploy.sh --purge` deletes."""

from __future__ import annotations

from tests.bundles.bundle import Bundle


def test_crds_of_the_bundle_go_and_those_of_the_cluster_stay(bundle: Bundle) -> None:
    text = bundle.files["undeploy.sh"].decode()
    listed = text.partition("\nCRDS=(\n")[2].partition("\n)")[0].split()
    # The CRDs of charts that keep them at uninstall are purged, too.
    assert {"servicemonitors.monitoring.coreos.com", "clusterpolicies.nvidia.com"} <= set(listed)
    # Other CNIs use it as well.
    assert "network-attachment-definitions.k8s.cni.cncf.io" not in listed
    assert listed == sorted(listed)
