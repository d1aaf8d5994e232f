#!/usr/bin/env bash
# Takes the bundle h100-aks-ubuntu-training off a cluster that Argo CD keeps; `argocd/remove.sh --help` tells how.
set -euo pipefail

BUNDLE=h100-aks-ubuntu-training
NAMES='cert-manager gpu-operator k8s-ephemeral-storage-metrics kai-scheduler kube-prometheus-stack network-operator nfd nodewright-customizations nodewright-operator nvidia-dra-driver-gpu nvsentinel prometheus-adapter prometheus-operator-crds'
ROOT=aht-root
NAMESPACE=argocd
APPLICATIONS=applications.argoproj.io

# In order of removal. The root goes to sleep first: it would bring back what is removed.
#   component COMPONENT APPLICATION SECONDS KEEP [RELEASE...]   KEEP: stays unless --purge; RELEASE: waits for its turn
#   rest APPLICATION SECONDS                                    what the others need; stays as long as one of them
removals() {
  component prometheus-adapter aht-prometheus-adapter 1200 no || return
  component nvsentinel aht-nvsentinel 1200 no || return
  component nvidia-dra-driver-gpu aht-nvidia-dra-driver-gpu 3000 no nvidia-dra-driver-gpu || return
  component kai-scheduler aht-kai-scheduler 1200 no || return
  component k8s-ephemeral-storage-metrics aht-k8s-ephemeral-storage-metrics 1200 no || return
  component gpu-operator aht-gpu-operator 3000 no || return
  component kube-prometheus-stack aht-kube-prometheus-stack 1200 no || return
  component prometheus-operator-crds aht-prometheus-operator-crds 1200 yes || return
  component nodewright-customizations aht-nodewright-customizations 1200 no || return
  component nodewright-operator aht-nodewright-operator 900 yes nodewright-operator || return
  component network-operator aht-network-operator 2100 no || return
  component nfd aht-nfd 1200 yes || return
  component cert-manager aht-cert-manager 1200 yes || return
  rest aht-namespaces 300 || return
  rest aht-root 300 || return
}

# What is known to hold up the removal of a component.
stuck() {
  case $1 in
    network-operator)
      say '  NodeMaintenance.maintenance.nvidia.com may wait for the finalizer maintenance.nvidia.com/finalizer; look, and free it by hand:' || return
      say '    # First choice: install network-operator again and let it finish the cleanup. Otherwise by hand:' || return
      say '    kubectl get nodemaintenances.maintenance.nvidia.com -A' || return
      say '    kubectl delete nodemaintenance '"'"'<name>'"'"' -n '"'"'<namespace>'"'"' --wait=false' || return
      say '    # Only if the object stays pending on its finalizer:' || return
      say '    kubectl patch nodemaintenance '"'"'<name>'"'"' -n '"'"'<namespace>'"'"' --type=merge -p '"'"'{"metadata":{"finalizers":null}}'"'"'' || return
      say '    kubectl uncordon '"'"'<node>'"'"'' || return
      ;;
    nodewright-operator)
      say '  NodeWright.nodewright.nvidia.com may wait for the finalizer nodewright.nvidia.com/nodewright; look, and free it by hand:' || return
      say '    kubectl get nodewrights.nodewright.nvidia.com' || return
      say '    kubectl describe nodewright '"'"'<name>'"'"'' || return
      say '    # Only when the operator is gone and cannot come back; cordons and node annotations then stay behind:' || return
      say '    kubectl patch nodewright '"'"'<name>'"'"' --type=merge -p '"'"'{"metadata":{"finalizers":null}}'"'"'' || return
      say '    kubectl uncordon '"'"'<node>'"'"'' || return
      ;;
    nvidia-dra-driver-gpu)
      say '  ComputeDomain.resource.nvidia.com may wait for the finalizer resource.nvidia.com/computeDomain; look, and free it by hand:' || return
      say '    kubectl get computedomains.resource.nvidia.com -A' || return
      say '    kubectl delete computedomain '"'"'<name>'"'"' -n '"'"'<namespace>'"'"' --wait=false' || return
      say '    # Only if the controller is gone and the object stays: kubectl patch computedomain '"'"'<name>'"'"' -n '"'"'<namespace>'"'"' --type=merge -p '"'"'{"metadata":{"finalizers":null}}'"'"'' || return
      ;;
  esac
}

usage() {
  cat <<'END'
usage: argocd/remove.sh [OPTION...]

Removes what Argo CD keeps of this bundle: the Applications in reverse order, each gone before the next, and only when
what has to come first is done. Deleting the root Application keeps the order as well, but asks nothing. Namespaces and
CRDs stay, and so do the Applications whose charts carry CRDs in their templates. Finalizers are never forced. May be run
again at any time; `kubectl apply -f argocd/root.yaml` brings the bundle back.

  --only NAME               only this component; may be repeated. For what is to leave the bundle: remove it here,
                            commit the bundle without it, then wake the root, which sleeps until it is told
  --dry-run                 tell what would be removed; change nothing
  --purge                   remove the Applications that carry CRDs as well (Argo CD leaves the CRDs themselves)
  --yes                     do not ask
  --context NAME            context of the kubeconfig for the cluster where Argo CD runs
  --workload-context NAME   for the cluster that Argo CD deploys to, when it is another one
  --help                    this text

Environment: KUBECONFIG, KUBE_CONTEXT (as --context), GATE_TIMEOUT_SCALE (a factor for how long a removal waits for its turn), GATE_POLL.

Exit status: 0 done, 1 failed, 2 wrong usage, 3 what a removal waits for did not come in time.
END
}

CONTEXT=${KUBE_CONTEXT:-} WORKLOAD_CONTEXT='' ONLY='' DRY_RUN='' PURGE='' YES='' KEPT=''

say() { printf '%s\n' "$*" >&2; }

kube() { kubectl ${CONTEXT:+--context "$CONTEXT"} --namespace "$NAMESPACE" "$@"; }

patch() { kube patch "$APPLICATIONS" "$1" --type=merge --patch "$2" >/dev/null; }

# find_application NAME: sets FOUND, empty when there is none; fails when the cluster cannot be asked.
find_application() { FOUND=$(kube get "$APPLICATIONS" "$1" --ignore-not-found --output=name); }

suspend() { # APPLICATION
  find_application "$1" || return
  [[ -n $FOUND ]] || return 0
  patch "$1" '{"spec":{"syncPolicy":{"automated":null}}}' && stop "$1"
}

# A sync that is under way goes on with what it began, and holds a deletion up: for ever, when it waits for a guard.
stop() { # APPLICATION
  local phase
  phase=$(kube get "$APPLICATIONS" "$1" --ignore-not-found --output='jsonpath={.status.operationState.phase}') || return
  [[ $phase == Running ]] || return 0
  patch "$1" '{"status":{"operationState":{"phase":"Terminating"}}}' || {
    find_application "$1" && [[ -z $FOUND ]]
  }
}

delete() { # APPLICATION SECONDS
  say "removing $1"
  kube delete "$APPLICATIONS" "$1" --ignore-not-found --wait=false >/dev/null || return
  stop "$1" || return
  kube delete "$APPLICATIONS" "$1" --ignore-not-found --wait --timeout="$2s" >/dev/null || {
    say "$1 is still there after $2s: kubectl --namespace $NAMESPACE describe $APPLICATIONS $1"
    return 1
  }
}

component() { # COMPONENT APPLICATION SECONDS KEEP [RELEASE...]
  local name=$2
  chosen "$1" || return 0
  find_application "$name" || return
  [[ -n $FOUND ]] || return 0
  if [[ $4 == yes && -z $PURGE ]]; then
    say "$name stays, since its chart carries CRDs; --purge removes it"
    KEPT=yes
  elif [[ -n $DRY_RUN ]]; then
    say "would remove $name"
  else
    turn_of "$name" "${@:5}" || { stuck "$1"; return 3; }
    delete "$name" "$3" || { stuck "$1"; return 1; }
  fi
}

turn_of() { # APPLICATION [RELEASE...]: wait until all of it may go
  local release
  for release in "${@:2}"; do
    "$FOLDER/lib/gate" --context "${WORKLOAD_CONTEXT:-$CONTEXT}" --teardown "$release" || {
      say "$1 is not removed: what has to come first is not done"
      return 3
    }
  done
}

rest() { # APPLICATION SECONDS
  [[ -z $ONLY ]] || return 0
  find_application "$1" || return
  if [[ -z $FOUND || -n $KEPT ]]; then
    return 0
  elif [[ -n $DRY_RUN ]]; then
    say "would remove $1"
  else
    delete "$1" "$2"
  fi
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
  printf 'Remove%s the bundle %s? Type its name: ' "${ONLY:+$ONLY of}" "$BUNDLE" >&2
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
  [[ -n $DRY_RUN ]] || suspend "$ROOT" || exit 1
  removals || status=$?
  if ((status)); then
    say "error: stopped, $ROOT is asleep; once that is settled: argocd/remove.sh${ONLY// / --only }${CONTEXT:+ --context $CONTEXT}${WORKLOAD_CONTEXT:+ --workload-context $WORKLOAD_CONTEXT}${PURGE:+ --purge}"
    exit "$status"
  fi
  if [[ -n $DRY_RUN ]]; then
    say 'done: nothing was changed'
  elif [[ -n $ONLY ]]; then
    say "done; $ROOT is asleep. Commit the bundle without$ONLY, then wake it:"
    say "  kubectl${CONTEXT:+ --context $CONTEXT} apply --filename argocd/root.yaml"
  else
    [[ -z $KEPT ]] || say "$ROOT stays, asleep, with what is left"
    say 'done'
  fi
}

FOLDER=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
main "$@"
