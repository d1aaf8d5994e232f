#!/usr/bin/env bash
# Removes the bundle gb200-gke-cos-training; `./undeploy.sh --help` tells how.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib/gates.sh
source "$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)/lib/gates.sh"
# shellcheck source-path=SCRIPTDIR source=lib/gate
source "$BUNDLE_DIR/lib/gate"
# shellcheck source-path=SCRIPTDIR source=lib/releases.sh
source "$BUNDLE_DIR/lib/releases.sh"

# In order of removal; what lib/gate --teardown holds comes before each.
#   remove ID COMPONENT NAMESPACE TIMEOUT TEARDOWN     TEARDOWN keep: carries CRDs in templates, stays unless --purge
# shellcheck disable=SC2016,SC1003 # words of the recipe, taken literally
removals() {
  remove prometheus-adapter prometheus-adapter monitoring 900 remove
  remove nvsentinel nvsentinel nvsentinel 900 remove
  remove nvidia-dra-driver-gpu nvidia-dra-driver-gpu nvidia-dra-driver 2700 remove
  remove kai-scheduler kai-scheduler kai-scheduler 900 remove
  remove k8s-ephemeral-storage-metrics k8s-ephemeral-storage-metrics monitoring 900 remove
  remove gpu-operator gpu-operator gpu-operator 900 remove
  remove gpu-operator-pre gpu-operator gpu-operator 900 remove
  remove kube-prometheus-stack kube-prometheus-stack monitoring 900 remove
  remove prometheus-operator-crds prometheus-operator-crds monitoring 900 keep
  remove nodewright-customizations nodewright-customizations nodewright 900 remove
  remove nodewright-operator nodewright-operator nodewright 600 keep
  remove nfd nfd node-feature-discovery 900 keep
  remove gke-gb200-rdma gke-gb200-rdma kube-system 900 remove
  remove gcp-driver-installer gcp-driver-installer kube-system 900 remove
  remove cert-manager cert-manager cert-manager 900 keep
}

# What a removal that was cut short leaves behind, and how people recover it. Nothing here is done by this script.
#   stuck GROUP KIND NAMESPACE FINALIZER COMMAND...
# shellcheck disable=SC2016,SC1003 # words of the recipe, taken literally
stuck_objects() {
  stuck resource.nvidia.com ComputeDomain '' resource.nvidia.com/computeDomain \
    'kubectl get computedomains.resource.nvidia.com -A' \
    'kubectl delete computedomain '"'"'<name>'"'"' -n '"'"'<namespace>'"'"' --wait=false' \
    '# Only if the controller is gone and the object stays: kubectl patch computedomain '"'"'<name>'"'"' -n '"'"'<namespace>'"'"' --type=merge -p '"'"'{"metadata":{"finalizers":null}}'"'"''
  stuck nodewright.nvidia.com NodeWright '' nodewright.nvidia.com/nodewright \
    'kubectl get nodewrights.nodewright.nvidia.com' \
    'kubectl describe nodewright '"'"'<name>'"'"'' \
    '# Only when the operator is gone and cannot come back; cordons and node annotations then stay behind:' \
    'kubectl patch nodewright '"'"'<name>'"'"' --type=merge -p '"'"'{"metadata":{"finalizers":null}}'"'"'' \
    'kubectl uncordon '"'"'<node>'"'"''
}

NAMESPACES=(
  cert-manager
  gpu-operator
  kai-scheduler
  monitoring
  node-feature-discovery
  nodewright
  nvidia-dra-driver
  nvsentinel
)
CRDS=(
  alertmanagerconfigs.monitoring.coreos.com
  alertmanagers.monitoring.coreos.com
  bindrequests.scheduling.run.ai
  certificaterequests.cert-manager.io
  certificates.cert-manager.io
  challenges.acme.cert-manager.io
  clusterissuers.cert-manager.io
  clusterpolicies.nvidia.com
  computedomaincliques.resource.nvidia.com
  computedomains.resource.nvidia.com
  configs.kai.scheduler
  deploymentpolicies.nodewright.nvidia.com
  deploymentpolicies.skyhook.nvidia.com
  gpuclusters.nvidia.com
  issuers.cert-manager.io
  nodefeaturegroups.nfd.k8s-sigs.io
  nodefeaturerules.nfd.k8s-sigs.io
  nodefeatures.nfd.k8s-sigs.io
  noderesourcetopologies.topology.node.k8s.io
  nodewrights.nodewright.nvidia.com
  nvidiadrivers.nvidia.com
  orders.acme.cert-manager.io
  podgroups.scheduling.run.ai
  podmonitors.monitoring.coreos.com
  probes.monitoring.coreos.com
  prometheusagents.monitoring.coreos.com
  prometheuses.monitoring.coreos.com
  prometheusrules.monitoring.coreos.com
  queues.scheduling.run.ai
  schedulingshards.kai.scheduler
  scrapeconfigs.monitoring.coreos.com
  servicemonitors.monitoring.coreos.com
  skyhooks.skyhook.nvidia.com
  thanosrulers.monitoring.coreos.com
  topologies.kai.scheduler
)

usage() {
  cat <<'END'
usage: ./undeploy.sh [OPTION...]

Removes the releases of this bundle in reverse order, each only once the cluster has finished what its removal waits for.
Namespaces, CRDs and the releases that carry CRDs stay. Finalizers are never forced: what is stuck is reported. May be
run again at any time.

  --only NAME      only this component or release; may be repeated
  --dry-run        tell what would be removed; change nothing
  --purge          then remove the CRDs of the bundle, with EVERY object of them in the cluster, and its namespaces
  --force-foreign  remove releases of these names that this bundle did not install, too (they stay otherwise)
  --yes            do not ask
  --context NAME   context of the kubeconfig
  --help           this text

Environment: KUBECONFIG, KUBE_CONTEXT, HELM_DRIVER, GATE_TIMEOUT_SCALE, GATE_POLL; as for deploy.sh.

Exit status: 0 done, 1 failed, or releases of others stay, 2 wrong usage, 3 what a removal waits for did not come in time, 130 interrupted.
END
}

DRY_RUN='' PURGE='' YES='' LEFT='' FORCE_FOREIGN='' STAYED=0
declare -A FOREIGN=() # NAMESPACE/ID -> whose it is
ACTION=''

remove() { "${ACTION}_release" "$@"; }
collect_release() { collect "$@"; }

remove_release() { # ID COMPONENT NAMESPACE TIMEOUT TEARDOWN
  local id=$1 namespace=$3 timeout=$4 teardown=$5 status=0 what=removing
  selected "$id" || return 0
  STEP=$((STEP + 1))
  read_state "$id" "$namespace"
  if [[ -z $STATUS ]]; then
    say "[$STEP/$TOTAL] $id: not installed"
    return 0
  fi
  if [[ -n ${FOREIGN[$namespace/$id]-} ]]; then
    say "[$STEP/$TOTAL] $id: stays (--force-foreign removes it), since it is of ${FOREIGN[$namespace/$id]}"
    STAYED=$((STAYED + 1))
    return 0
  fi
  if [[ $teardown == keep && -z $PURGE ]]; then
    say "[$STEP/$TOTAL] $id: stays, since it carries CRDs (--purge removes it)"
    LEFT=$((LEFT + 1))
    return 0
  fi
  [[ -z $DRY_RUN ]] || what='would be removed'
  say "[$STEP/$TOTAL] $id: $what from namespace $namespace"
  gate_begin "$id" "$namespace"
  teardown_of "$id" || status=$?
  [[ -z $DRY_RUN ]] || return 0
  case $status in
    0) ;;
    1) stop "$id" 3 ;;
    *) stop "$id" 1 ;;
  esac
  helm_uninstall "$id" "$namespace" "$timeout" || stop "$id" 1
}

# find_foreign: fills FOREIGN. What Flux installed carries no label of this bundle either, and Flux would bring it back.
find_foreign() {
  local rows name bundle id wanted=()
  [[ -z $FORCE_FOREIGN ]] || return 0
  for id in "${IDS[@]}"; do wanted+=("${NAMESPACE_OF[$id]}/$id"); done
  rows=$(foreign_releases "$BUNDLE" "${wanted[@]}") || die "the releases cannot be read: $(one_line "$rows")"
  while read -r name bundle; do
    [[ -z $name ]] || FOREIGN[$name]=${bundle:+the bundle }${bundle:-no bundle; was it made by hand, or by Flux (flux/remove.sh)?}
  done <<<"$rows"
  if [[ -n $PURGE ]] && ((${#FOREIGN[@]})); then
    die "--purge would take the CRDs and namespaces of releases that this bundle did not install: ${!FOREIGN[*]}"
  fi
}

# find_keepers: refuses to take the CRDs and namespaces from under Argo CD or Flux, of whose doing Helm has no record; and to
# take releases for gone that Helm recorded elsewhere.
find_keepers() {
  local rows kind other=secret
  [[ $(helm_storage) == configmap ]] || other=configmap
  rows=$(look get "$other" --all-namespaces -l "owner=helm,bundlec.dev/bundle=$BUNDLE" -o name) || rows=''
  [[ -z $rows ]] || die "Helm keeps releases of this bundle in ${other}s: set HELM_DRIVER=$other"
  [[ -n $PURGE ]] || return 0
  for kind in applications.argoproj.io helmreleases.helm.toolkit.fluxcd.io; do
    rows=$(look get "$kind" --all-namespaces -l "bundlec.dev/bundle=$BUNDLE" -o name) || rows=''
    [[ -z $rows ]] || die "--purge would take the CRDs and namespaces from under ${rows//$'\n'/ }: argocd/remove.sh or flux/remove.sh first"
  done
}

stop() { # ID STATUS
  local only=''
  if ((${#ONLY[@]})); then only=$(printf ' --only %s' ${ONLY[@]+"${ONLY[@]}"}); fi
  stuck_objects
  say "error: stopped at $1; once that is settled: ./undeploy.sh$only${KUBE_CONTEXT:+ --context $KUBE_CONTEXT}${PURGE:+ --purge}${FORCE_FOREIGN:+ --force-foreign}"
  exit "$2"
}

stuck() { # GROUP KIND NAMESPACE FINALIZER COMMAND...
  local seen line hits=() where=(--all-namespaces)
  [[ -z $3 ]] || where=(-n "$3")
  seen=$(look get "$2${1:+.$1}" "${where[@]}" -o 'jsonpath={range .items[?(@.metadata.deletionTimestamp)]}{.metadata.namespace}/{.metadata.name} {.metadata.finalizers}{"\n"}{end}') || return 0
  while IFS= read -r line; do
    if [[ $line == *"\"$4\""* ]]; then hits+=("${line%% *}"); fi
  done <<<"$seen"
  ((${#hits[@]})) || return 0
  say "stuck: $2 ${hits[*]#/} wait(s) for the finalizer $4. First let its controller finish (deploy it again if it is gone). Else by hand${KUBE_CONTEXT:+, in the context $KUBE_CONTEXT}:"
  for line in "${@:5}"; do say "  $line"; done
}

# In one call each: they go side by side, and kubectl names those that it waited for in vain.
purge() {
  local name rows namespaces=()
  if ((${#CRDS[@]})); then
    kube delete customresourcedefinition ${CRDS[@]+"${CRDS[@]}"} --ignore-not-found --timeout 300s >&2 || stop 'the CRDs' 1
  fi
  for name in ${NAMESPACES[@]+"${NAMESPACES[@]}"}; do
    rows=$(look get "$(helm_storage)" -n "$name" -l owner=helm -o 'jsonpath={range .items[*]}{.metadata.labels.name} {end}') \
      || die "namespace $name: $(one_line "$rows")"
    if [[ -z $rows ]]; then
      namespaces+=("$name")
    else
      say "namespace $name: stays, it holds the releases $rows"
    fi
  done
  if ((${#namespaces[@]})); then
    kube delete namespace "${namespaces[@]}" --ignore-not-found --timeout 600s >&2 || stop 'the namespaces' 1
  fi
}

confirm() {
  local answer='' what=''
  [[ -z $YES ]] || return 0
  [[ -t 0 ]] || usage_error 'nobody to ask: pass --yes'
  if ((${#ONLY[@]})); then what=" ${ONLY[*]} of"; fi
  printf 'Remove%s the bundle %s%s? Type its name: ' "$what" "$BUNDLE" "${PURGE:+ with its CRDs and namespaces}" >&2
  read -r answer || :
  [[ $answer == "$BUNDLE" ]] || die 'nothing was removed'
}

main() {
  while (($#)); do
    case $1 in
      --only | --context)
        (($# > 1)) || usage_error "$1 wants a value"
        set -- "$1=$2" "${@:3}"
        continue
        ;;
      --only=*) take_value "$1"; ONLY+=("$VALUE") ;;
      --context=*) take_value "$1"; KUBE_CONTEXT=$VALUE ;;
      --dry-run) DRY_RUN=yes ;;
      --purge) PURGE=yes ;;
      --force-foreign) FORCE_FOREIGN=yes ;;
      --yes) YES=yes ;;
      -h | --help) usage; exit 0 ;;
      *) usage_error "unknown argument '$1'" ;;
    esac
    shift
  done
  if [[ -n $PURGE ]] && ((${#ONLY[@]})); then usage_error '--purge goes with a whole run only'; fi
  read_table removals
  check_selection
  check_tools
  say "bundle $BUNDLE, context ${KUBE_CONTEXT:-$(kubectl config current-context 2>/dev/null || echo of the cluster)}"
  find_keepers
  find_foreign
  GATE_TEARDOWN=yes
  if [[ -n $DRY_RUN ]]; then GATE_MODE='peek'; else confirm; fi
  ACTION=remove
  removals
  if [[ -n $DRY_RUN ]]; then
    say "dry run: nothing was changed${PURGE:+; then the CRDs ${CRDS[*]-} and the namespaces ${NAMESPACES[*]-}}"
    exit $((STAYED > 0))
  fi
  [[ -z $PURGE ]] || purge
  say "done${LEFT:+; $LEFT releases with CRDs stay}"
  ((STAYED == 0)) || die "$STAYED releases of these names stay: this bundle did not install them"
}

main "$@"
