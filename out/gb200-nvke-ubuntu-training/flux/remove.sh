#!/usr/bin/env bash
# Takes the bundle gb200-nvke-ubuntu-training off a cluster that Flux keeps; `flux/remove.sh --help` tells how.
set -euo pipefail

BUNDLE=gb200-nvke-ubuntu-training
NAMES='cert-manager gpu-operator gpu-operator-pre k8s-ephemeral-storage-metrics kai-scheduler kube-prometheus-stack network-operator network-operator-post nfd nodewright-operator nvidia-dra-driver-gpu nvsentinel prometheus-adapter prometheus-operator-crds rdma-modules sriov-ib-networks'
ROOT=nvt-root
NAMESPACE=flux-system
KUSTOMIZATIONS=kustomizations.kustomize.toolkit.fluxcd.io
HELMRELEASES=helmreleases.helm.toolkit.fluxcd.io
HELMCHARTS=helmcharts.source.toolkit.fluxcd.io

# In order of removal. The root goes to sleep first: it would bring back what is removed.
#   release RELEASE COMPONENT NAMESPACE OBJECT SECONDS KEEP TEARDOWN
#                                 OBJECT: name of its HelmRelease and Kustomization; KEEP: stays unless --purge
#   gate KUSTOMIZATION SECONDS    of the release above it
#   rest KUSTOMIZATION SECONDS    what the others need
removals() {
  release sriov-ib-networks sriov-ib-networks nvidia-network-operator nvt-sriov-ib-networks 1920 no no || return
  gate nvt-gate-sriov-ib-networks 180 || return
  release nvsentinel nvsentinel nvsentinel nvt-nvsentinel 1920 no no || return
  gate nvt-gate-nvsentinel 180 || return
  release nvidia-dra-driver-gpu nvidia-dra-driver-gpu nvidia-dra-driver nvt-nvidia-dra-driver-gpu 5520 no yes || return
  release network-operator-post network-operator nvidia-network-operator nvt-network-operator-post 1920 no yes || return
  gate nvt-gate-network-operator-post 180 || return
  release network-operator network-operator nvidia-network-operator nvt-network-operator 1920 no no || return
  gate nvt-gate-network-operator 180 || return
  release kai-scheduler kai-scheduler kai-scheduler nvt-kai-scheduler 1920 no no || return
  release gpu-operator gpu-operator gpu-operator nvt-gpu-operator 1920 no no || return
  release gpu-operator-pre gpu-operator gpu-operator nvt-gpu-operator-pre 1920 no no || return
  gate nvt-gate-gpu-operator-pre 180 || return
  release rdma-modules rdma-modules nodewright nvt-rdma-modules 1920 no no || return
  gate nvt-gate-rdma-modules 180 || return
  release prometheus-adapter prometheus-adapter monitoring nvt-prometheus-adapter 1920 no no || return
  release k8s-ephemeral-storage-metrics k8s-ephemeral-storage-metrics monitoring nvt-k8s-ephemeral-storage-metrics 1920 no no || return
  gate nvt-gate-k8s-ephemeral-storage-metrics 180 || return
  release kube-prometheus-stack kube-prometheus-stack monitoring nvt-kube-prometheus-stack 1920 no no || return
  gate nvt-gate-kube-prometheus-stack 180 || return
  release prometheus-operator-crds prometheus-operator-crds monitoring nvt-prometheus-operator-crds 1920 yes no || return
  release nodewright-operator nodewright-operator nodewright nvt-nodewright-operator 1320 yes yes || return
  release nfd nfd node-feature-discovery nvt-nfd 1920 yes no || return
  release cert-manager cert-manager cert-manager nvt-cert-manager 1920 yes no || return
  rest nvt-gates 180 || return
  rest nvt-namespaces 180 || return
  rest nvt-root 180 || return
}

# What is known to hold up the removal of a release.
stuck() {
  case $1 in
    nodewright-operator)
      say '  NodeWright.nodewright.nvidia.com may wait for the finalizer nodewright.nvidia.com/nodewright; look, and free it by hand:' || return
      say '    kubectl get nodewrights.nodewright.nvidia.com' || return
      say '    kubectl describe nodewright '"'"'<name>'"'"'' || return
      say '    # Only when the operator is gone and cannot come back; cordons and node annotations then stay behind:' || return
      say '    kubectl patch nodewright '"'"'<name>'"'"' --type=merge -p '"'"'{"metadata":{"finalizers":null}}'"'"'' || return
      say '    kubectl uncordon '"'"'<node>'"'"'' || return
      ;;
    network-operator)
      say '  NodeMaintenance.maintenance.nvidia.com may wait for the finalizer maintenance.nvidia.com/finalizer; look, and free it by hand:' || return
      say '    # First choice: install network-operator again and let it finish the cleanup. Otherwise by hand:' || return
      say '    kubectl get nodemaintenances.maintenance.nvidia.com -A' || return
      say '    kubectl delete nodemaintenance '"'"'<name>'"'"' -n '"'"'<namespace>'"'"' --wait=false' || return
      say '    # Only if the object stays pending on its finalizer:' || return
      say '    kubectl patch nodemaintenance '"'"'<name>'"'"' -n '"'"'<namespace>'"'"' --type=merge -p '"'"'{"metadata":{"finalizers":null}}'"'"'' || return
      say '    kubectl uncordon '"'"'<node>'"'"'' || return
      ;;
    network-operator-post)
      say '  NodeMaintenance.maintenance.nvidia.com may wait for the finalizer maintenance.nvidia.com/finalizer; look, and free it by hand:' || return
      say '    # First choice: install network-operator again and let it finish the cleanup. Otherwise by hand:' || return
      say '    kubectl get nodemaintenances.maintenance.nvidia.com -A' || return
      say '    kubectl delete nodemaintenance '"'"'<name>'"'"' -n '"'"'<namespace>'"'"' --wait=false' || return
      say '    # Only if the object stays pending on its finalizer:' || return
      say '    kubectl patch nodemaintenance '"'"'<name>'"'"' -n '"'"'<namespace>'"'"' --type=merge -p '"'"'{"metadata":{"finalizers":null}}'"'"'' || return
      say '    kubectl uncordon '"'"'<node>'"'"'' || return
      ;;
    nvidia-dra-driver-gpu)
      say '  ComputeDomain.resource.nvidia.com may wait for the finalizer resource.nvidia.com/computeDomain; look, and free it by hand:' || return
      say '    kubectl get computedomains.resource.nvidia.com -A' || return
      say '    kubectl delete computedomain '"'"'<name>'"'"' -n '"'"'<namespace>'"'"' --wait=false' || return
      say '    # Only if the controller is gone and the object stays: kubectl patch computedomain '"'"'<name>'"'"' -n '"'"'<namespace>'"'"' --type=merge -p '"'"'{"metadata":{"finalizers":null}}'"'"'' || return
      ;;
    sriov-ib-networks)
      say '  SriovIBNetwork.sriovnetwork.openshift.io may wait for the finalizer netattdef.finalizers.sriovnetwork.openshift.io; look, and free it by hand:' || return
      say '    # The SR-IOV operator removes it together with the NetworkAttachmentDefinition; look why it does not:' || return
      say '    kubectl -n nvidia-network-operator logs deployment/network-operator-sriov-network-operator' || return
      say '    kubectl get network-attachment-definitions.k8s.cni.cncf.io -A' || return
      ;;
  esac
}

usage() {
  cat <<'END'
usage: flux/remove.sh [OPTION...]

Removes what Flux keeps of this bundle: the releases in reverse order, each gone before the next, then the rest. Flux
itself knows no order of removal. Namespaces, CRDs and the releases that carry CRDs stay. Finalizers are never forced.
May be run again at any time.

  --only NAME               only this component or release; may be repeated. For what is to leave the bundle: remove it here,
                            commit the bundle without it, then wake the root, which sleeps until it is told
  --dry-run                 tell what would be removed; change nothing
  --purge                   remove the releases that carry CRDs as well, with EVERY object of these CRDs in the cluster
  --yes                     do not ask
  --context NAME            context of the kubeconfig for the cluster where Flux runs
  --workload-context NAME   for the cluster that Flux deploys to, when it is another one
  --help                    this text

Environment: KUBECONFIG, KUBE_CONTEXT (as --context), GATE_TIMEOUT_SCALE (a factor for how long a removal waits for its turn), GATE_POLL.

Exit status: 0 done, 1 failed, 2 wrong usage, 3 what a removal waits for did not come in time.
END
}

CONTEXT=${KUBE_CONTEXT:-} WORKLOAD_CONTEXT='' ONLY='' DRY_RUN='' PURGE='' YES='' CHOSEN=''

say() { printf '%s\n' "$*" >&2; }

kube() { kubectl ${CONTEXT:+--context "$CONTEXT"} --namespace "$NAMESPACE" "$@"; }

# Under a name of our own: Flux takes back what kubectl changes under its name.
patch() { kube patch "$1" "$2" --type=merge --field-manager=bundlec --patch "$3" >/dev/null; }

# find_object KIND NAME: sets FOUND, empty when there is none; fails when the cluster cannot be asked.
find_object() { FOUND=$(kube get "$1" "$2" --ignore-not-found --output=name); }

suspend() { # KIND NAME
  find_object "$1" "$2" || return
  [[ -z $FOUND ]] || patch "$1" "$2" '{"spec":{"suspend":true}}'
}

wake() { # KIND NAME
  local suspended
  suspended=$(kube get "$1" "$2" --ignore-not-found --output='jsonpath={.spec.suspend}') || return
  [[ $suspended != true ]] || patch "$1" "$2" '{"spec":{"suspend":false}}'
}

node() { # KUSTOMIZATION SECONDS
  find_object "$KUSTOMIZATIONS" "$1" || return
  [[ -n $FOUND ]] || return 0
  if [[ -n $DRY_RUN ]]; then
    say "would remove $1"
    return 0
  fi
  say "removing $1"
  kube delete "$KUSTOMIZATIONS" "$1" --ignore-not-found --wait --timeout="$2s" >/dev/null || {
    say "$1 is still there after $2s: kubectl --namespace $NAMESPACE describe kustomization $1"
    return 1
  }
}

gate() { # KUSTOMIZATION SECONDS
  [[ -z $CHOSEN ]] || node "$@"
}

rest() { # KUSTOMIZATION SECONDS
  [[ -n $ONLY ]] || node "$@"
}

release() { # RELEASE COMPONENT NAMESPACE OBJECT SECONDS KEEP TEARDOWN
  local id=$1 namespace=$3 name=$4 seconds=$5 keep=$6 teardown=$7
  CHOSEN=''
  chosen "$id" "$2" || return 0
  CHOSEN=yes
  if [[ -z $DRY_RUN ]]; then
    if [[ $teardown == yes ]]; then turn_of "$id" "$name" || return; fi
    if [[ $keep == yes ]]; then keep_or_purge "$id" "$name" "$namespace" || return; fi
    # What is suspended would be deleted without removing what it stands for.
    wake "$KUSTOMIZATIONS" "$name" || return
    if [[ $keep == no || -n $PURGE ]]; then wake "$HELMRELEASES" "$name" || return; fi
  elif [[ $keep == yes && -z $PURGE ]]; then
    find_object "$HELMRELEASES" "$name" || return
    [[ -z $FOUND ]] || say "$id would stay in the cluster, since it carries CRDs"
  fi
  node "$name" "$seconds" || { stuck "$id"; return 1; }
  [[ -z $DRY_RUN ]] || return 0
  # Flux gives up waiting for the end of a release after a while, and says nothing.
  find_object "$HELMRELEASES" "$name" || return
  [[ -z $FOUND ]] || kube wait --for=delete "$FOUND" --timeout="$((seconds / 2))s" >/dev/null || {
    say "$id is still being removed: kubectl --namespace $NAMESPACE describe helmrelease $name"
    stuck "$id"
    return 1
  }
  # A HelmRelease that is suspended leaves the chart behind that was fetched for it.
  [[ $keep == no ]] || kube delete "$HELMCHARTS" "$NAMESPACE-$name" --ignore-not-found >/dev/null
}

turn_of() { # RELEASE OBJECT: wait until the release may go
  find_object "$HELMRELEASES" "$2" || return
  [[ -n $FOUND ]] || return 0
  "$FOLDER/lib/gate" --context "${WORKLOAD_CONTEXT:-$CONTEXT}" --teardown "$1" || {
    say "$1 is not removed: what has to come first is not done"
    stuck "$1"
    return 3
  }
}

keep_or_purge() { # RELEASE OBJECT NAMESPACE: the Kustomization of such a release lets go of it, unless told otherwise
  find_object "$HELMRELEASES" "$2" || return
  if [[ -z $FOUND ]]; then
    [[ -z $PURGE ]] || say "$1 is not kept by Flux; if an earlier removal left it in the cluster: \`helm uninstall $1 -n $3\`"
  elif [[ -z $PURGE ]]; then
    # A suspended HelmRelease is deleted without uninstalling anything.
    suspend "$HELMRELEASES" "$2" || return
    say "$1 stays in the cluster, since it carries CRDs; --purge removes it now, \`helm uninstall $1 -n $3\` later"
  fi
  find_object "$KUSTOMIZATIONS" "$2" || return
  [[ -z $FOUND ]] || patch "$KUSTOMIZATIONS" "$2" '{"spec":{"deletionPolicy":"WaitForTermination"}}'
}

only() { # NAME
  [[ $1 != *' '* && " $NAMES " == *" $1 "* ]] || { say "no '$1' in this bundle: $NAMES"; exit 2; }
  ONLY+=" $1"
}

chosen() { # NAME...: whether --only names one of these, or is not given
  local name
  [[ -n $ONLY ]] || return 0
  for name in "$@"; do
    [[ "$ONLY " != *" $name "* ]] || return 0
  done
  return 1
}

# check_place: before anything is touched, that what is needed on the way is there and will do.
check_place() {
  [[ -x $FOLDER/lib/gate ]] || { say "no lib/gate in $FOLDER: run this script where it lies in the bundle"; exit 2; }
  "$FOLDER/lib/gate" --check || exit 2
  unset HELM_KUBECONTEXT # Helm has no part in this
}

confirm() {
  local answer=''
  [[ -z $YES && -z $DRY_RUN ]] || return 0
  [[ -t 0 ]] || { say 'nobody to ask: pass --yes'; exit 2; }
  printf 'Remove%s the bundle %s%s? Type its name: ' "${ONLY:+$ONLY of}" "$BUNDLE" "${PURGE:+ with its CRDs}" >&2
  read -r answer || :
  [[ $answer == "$BUNDLE" ]] || { say 'nothing was removed'; exit 1; }
}

main() {
  local status=0
  while (($#)); do
    case $1 in
      --only | --context | --workload-context)
        (($# > 1)) || { say "$1 wants a value"; exit 2; }
        set -- "$1=$2" "${@:3}"
        continue
        ;;
      --context= | --workload-context=) say "${1%=} wants a value"; exit 2 ;;
      --context=*) CONTEXT=${1#*=} ;;
      --workload-context=*) WORKLOAD_CONTEXT=${1#*=} ;;
      --only=*) only "${1#*=}" ;;
      --dry-run) DRY_RUN=yes ;;
      --purge) PURGE=yes ;;
      --yes) YES=yes ;;
      -h | --help) usage; exit 0 ;;
      *) say "unknown argument '$1'"; usage >&2; exit 2 ;;
    esac
    shift
  done
  check_place
  say "bundle $BUNDLE, context ${CONTEXT:-$(kubectl config current-context 2>/dev/null || echo of the cluster)}"
  confirm
  [[ -n $DRY_RUN ]] || suspend "$KUSTOMIZATIONS" "$ROOT" || exit 1
  removals || status=$?
  if ((status)); then
    say "error: stopped, $ROOT is suspended; once that is settled: flux/remove.sh${ONLY// / --only }${CONTEXT:+ --context $CONTEXT}${WORKLOAD_CONTEXT:+ --workload-context $WORKLOAD_CONTEXT}${PURGE:+ --purge}"
    exit "$status"
  fi
  if [[ -n $DRY_RUN ]]; then
    say 'done: nothing was changed'
  elif [[ -n $ONLY ]]; then
    say "done; $ROOT is suspended. Commit the bundle without$ONLY, then wake it:"
    say "  kubectl${CONTEXT:+ --context $CONTEXT} --namespace $NAMESPACE patch kustomization $ROOT --type=merge --patch '{\"spec\":{\"suspend\":false}}'"
  else
    kube delete gitrepositories.source.toolkit.fluxcd.io nvt --ignore-not-found >/dev/null
    say 'done'
  fi
}

FOLDER=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
main "$@"
