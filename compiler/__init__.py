"""bundlec: compiles recipes into GitOps bundles for GPU Kubernetes clusters.

The package reads like its pipeline: load -> resolve -> plan -> emit -> write, one folder a stage.
`pipeline.py` chains them; the modules beside it are the ground that every stage stands on.
"""
