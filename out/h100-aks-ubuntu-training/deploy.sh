#!/usr/bin/env bash
# Installs or updates the bundle h100-aks-ubuntu-training; `./deploy.sh --help` tells how.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib/gates.sh
source "$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)/lib/gates.sh"
# shellcheck source-path=SCRIPTDIR source=lib/gate
source "$BUNDLE_DIR/lib/gate"
# shellcheck source-path=SCRIPTDIR source=lib/prepare
source "$BUNDLE_DIR/lib/prepare"
# shellcheck source-path=SCRIPTDIR source=lib/releases.sh
source "$BUNDLE_DIR/lib/releases.sh"

# In order of deployment. A gate (lib/gate) stands in front of the release it holds back.
#   release ID COMPONENT NAMESPACE CONTENT TIMEOUT WAIT TEARDOWN CHART [OPTION...]
# CONTENT changes when the release does; WAIT is none, workloads or jobs (and workloads); TEARDOWN is what --prune does once
# the bundle no longer holds it: first, remove, last; keep: nothing, it carries CRDs; wait: nothing, its removal has
# conditions that only the undeploy.sh of a bundle that holds it knows.
# shellcheck disable=SC2016,SC1003 # words of the recipe, taken literally
releases() {
  release cert-manager cert-manager cert-manager 8c9b5f97 900 jobs keep cert-manager --repo https://charts.jetstack.io --version v1.20.2
  release nfd nfd node-feature-discovery ef91dda9 900 jobs keep node-feature-discovery --repo https://kubernetes-sigs.github.io/node-feature-discovery/charts --version 0.20.1
  release network-operator network-operator nvidia-network-operator 45e161d2 900 jobs remove network-operator --repo https://helm.ngc.nvidia.com/nvidia --version 26.7.0
  gate network-operator-post
  release network-operator-post network-operator nvidia-network-operator fd17659e 900 jobs first ./components/network-operator-post
  release nodewright-operator nodewright-operator nodewright d5b68cdc 600 jobs keep oci://ghcr.io/nvidia/nodewright/charts/nodewright --version v0.19.1
  gate nodewright-customizations
  release nodewright-customizations nodewright-customizations nodewright 23249052 900 jobs first ./components/nodewright-customizations
  release prometheus-operator-crds prometheus-operator-crds monitoring c7cb9b0c 900 jobs keep prometheus-operator-crds --repo https://prometheus-community.github.io/helm-charts --version 28.0.1
  gate kube-prometheus-stack
  release kube-prometheus-stack kube-prometheus-stack monitoring cda8eb6a 900 jobs remove kube-prometheus-stack --repo https://prometheus-community.github.io/helm-charts --version 83.7.0
  release gpu-operator-pre gpu-operator gpu-operator 180cba37 900 jobs last ./components/gpu-operator-pre
  gate gpu-operator
  release gpu-operator gpu-operator gpu-operator d9a21944 900 jobs remove gpu-operator --repo https://helm.ngc.nvidia.com/nvidia --version v26.7.1
  gate gpu-operator-post
  release gpu-operator-post gpu-operator gpu-operator 22b41517 900 jobs first ./components/gpu-operator-post
  gate k8s-ephemeral-storage-metrics
  release k8s-ephemeral-storage-metrics k8s-ephemeral-storage-metrics monitoring dd210170 900 jobs remove k8s-ephemeral-storage-metrics --repo https://jmcgrath207.github.io/k8s-ephemeral-storage-metrics/chart --version 1.19.2
  release kai-scheduler kai-scheduler kai-scheduler b8ec562a 900 none remove oci://ghcr.io/kai-scheduler/kai-scheduler/kai-scheduler --version v0.16.9
  release nvidia-dra-driver-gpu nvidia-dra-driver-gpu nvidia-dra-driver 116f7df9 2700 jobs wait oci://registry.k8s.io/dra-driver-nvidia/charts/dra-driver-nvidia-gpu --version 0.5.1
  gate nvsentinel
  release nvsentinel nvsentinel nvsentinel 6e445ba9 900 jobs remove oci://ghcr.io/nvidia/nvsentinel --version v1.25.0
  release prometheus-adapter prometheus-adapter monitoring 611ea77b 900 jobs remove prometheus-adapter --repo https://prometheus-community.github.io/helm-charts --version 5.3.0
}

# Looked at by --health: healthy COMPONENT gate_KIND ID ... (lib/gates.sh)
# shellcheck disable=SC2016,SC1003 # words of the recipe, taken literally
health() {
  healthy cert-manager gate_deployment cert-manager/cainjector 0 fail always cert-manager-cainjector cert-manager ''
  healthy cert-manager gate_deployment cert-manager/controller 0 fail always cert-manager cert-manager ''
  healthy cert-manager gate_crd cert-manager/crd-certificates 0 fail always certificates.cert-manager.io
  healthy cert-manager gate_crd cert-manager/crd-clusterissuers 0 fail always clusterissuers.cert-manager.io
  healthy cert-manager gate_crd cert-manager/crd-issuers 0 fail always issuers.cert-manager.io
  healthy cert-manager gate_deployment cert-manager/webhook 0 fail always cert-manager-webhook cert-manager ''
  healthy cert-manager gate_webhook cert-manager/webhook-answers 0 fail always cert-manager-webhook cert-manager
  healthy nfd gate_crd nfd/crd-nodefeaturegroups 0 fail always nodefeaturegroups.nfd.k8s-sigs.io
  healthy nfd gate_crd nfd/crd-nodefeaturerules 0 fail always nodefeaturerules.nfd.k8s-sigs.io
  healthy nfd gate_crd nfd/crd-nodefeatures 0 fail always nodefeatures.nfd.k8s-sigs.io
  healthy nfd gate_deployment nfd/gc 0 fail always nfd-gc node-feature-discovery ''
  healthy nfd gate_deployment nfd/master 0 fail always nfd-master node-feature-discovery ''
  healthy nfd gate_daemonset nfd/topology-updater 0 fail always nfd-topology-updater node-feature-discovery 1 ''
  healthy nfd gate_daemonset nfd/worker 0 fail always nfd-worker node-feature-discovery 1 ''
  healthy network-operator gate_crd network-operator/crd-policies 0 fail always nicclusterpolicies.mellanox.com
  healthy network-operator gate_deployment network-operator/operator 0 fail always network-operator nvidia-network-operator ''
  healthy network-operator gate_every network-operator/policies-ready 0 fail always nicclusterpolicies.v1alpha1.mellanox.com '' '{.status.state}' ready
  healthy network-operator gate_daemonset network-operator/peermem-reloader 0 fail always nvidia-peermem-reloader nvidia-network-operator 1 ''
  healthy nodewright-operator gate_deployment nodewright-operator/controller 0 fail always nodewright-controller-manager nodewright ''
  healthy nodewright-operator gate_crd nodewright-operator/crd-nodewrights 0 fail always nodewrights.nodewright.nvidia.com
  healthy nodewright-operator gate_webhook nodewright-operator/webhook 0 fail always nodewright-webhook-service nodewright
  healthy nodewright-customizations gate_nodes nodewright-customizations/tuned-ubuntu-nodes 0 fail always feature.node.kubernetes.io/pci-0302_10de.present=true 1
  healthy nodewright-customizations gate_field nodewright-customizations/tuning-complete 0 fail always nodewrights.v1alpha1.nodewright.nvidia.com tuning '' '{.status.status}' equals complete
  healthy prometheus-operator-crds gate_crd prometheus-operator-crds/crd-alertmanagerconfigs 0 fail always alertmanagerconfigs.monitoring.coreos.com
  healthy prometheus-operator-crds gate_crd prometheus-operator-crds/crd-alertmanagers 0 fail always alertmanagers.monitoring.coreos.com
  healthy prometheus-operator-crds gate_crd prometheus-operator-crds/crd-podmonitors 0 fail always podmonitors.monitoring.coreos.com
  healthy prometheus-operator-crds gate_crd prometheus-operator-crds/crd-probes 0 fail always probes.monitoring.coreos.com
  healthy prometheus-operator-crds gate_crd prometheus-operator-crds/crd-prometheusagents 0 fail always prometheusagents.monitoring.coreos.com
  healthy prometheus-operator-crds gate_crd prometheus-operator-crds/crd-prometheuses 0 fail always prometheuses.monitoring.coreos.com
  healthy prometheus-operator-crds gate_crd prometheus-operator-crds/crd-prometheusrules 0 fail always prometheusrules.monitoring.coreos.com
  healthy prometheus-operator-crds gate_crd prometheus-operator-crds/crd-scrapeconfigs 0 fail always scrapeconfigs.monitoring.coreos.com
  healthy prometheus-operator-crds gate_crd prometheus-operator-crds/crd-servicemonitors 0 fail always servicemonitors.monitoring.coreos.com
  healthy prometheus-operator-crds gate_crd prometheus-operator-crds/crd-thanosrulers 0 fail always thanosrulers.monitoring.coreos.com
  healthy kube-prometheus-stack gate_statefulset kube-prometheus-stack/alertmanager 0 fail always alertmanager-kube-prometheus-alertmanager monitoring ''
  healthy kube-prometheus-stack gate_condition kube-prometheus-stack/alertmanager-available 0 fail always alertmanagers.v1.monitoring.coreos.com kube-prometheus-alertmanager monitoring Available True
  healthy kube-prometheus-stack gate_deployment kube-prometheus-stack/grafana 0 fail always grafana monitoring ''
  healthy kube-prometheus-stack gate_deployment kube-prometheus-stack/kube-state-metrics 0 fail always kube-state-metrics monitoring ''
  healthy kube-prometheus-stack gate_daemonset kube-prometheus-stack/node-exporter 0 fail always prometheus-node-exporter monitoring 1 ''
  healthy kube-prometheus-stack gate_deployment kube-prometheus-stack/operator 0 fail always kube-prometheus-operator monitoring ''
  healthy kube-prometheus-stack gate_statefulset kube-prometheus-stack/prometheus 0 fail always prometheus-kube-prometheus-prometheus monitoring ''
  healthy kube-prometheus-stack gate_condition kube-prometheus-stack/prometheus-available 0 fail always prometheuses.v1.monitoring.coreos.com kube-prometheus-prometheus monitoring Available True
  healthy gpu-operator gate_field gpu-operator/cluster-policy 0 fail always clusterpolicies.v1.nvidia.com cluster-policy '' '{.status.state}' equals ready
  healthy gpu-operator gate_crd gpu-operator/crd-clusterpolicies 0 fail always clusterpolicies.nvidia.com
  healthy gpu-operator gate_deployment gpu-operator/operator 0 fail always gpu-operator gpu-operator ''
  healthy gpu-operator gate_daemonset gpu-operator/toolkit-hardening 0 fail always nvidia-toolkit-hardening gpu-operator 1 ''
  healthy gpu-operator gate_daemonset gpu-operator/validator 0 fail always nvidia-operator-validator gpu-operator 1 ''
  healthy k8s-ephemeral-storage-metrics gate_deployment k8s-ephemeral-storage-metrics/exporter 0 fail always k8s-ephemeral-storage-metrics monitoring ''
  healthy kai-scheduler gate_crd kai-scheduler/crd-configs 0 fail always configs.kai.scheduler
  healthy kai-scheduler gate_crd kai-scheduler/crd-podgroups 0 fail always podgroups.scheduling.run.ai
  healthy kai-scheduler gate_crd kai-scheduler/crd-queues 0 fail always queues.scheduling.run.ai
  healthy kai-scheduler gate_crd kai-scheduler/crd-schedulingshards 0 fail always schedulingshards.kai.scheduler
  healthy kai-scheduler gate_condition kai-scheduler/operands 0 fail always configs.v1.kai.scheduler kai-config '' Available True
  healthy kai-scheduler gate_deployment kai-scheduler/operator 0 fail always kai-operator kai-scheduler ''
  healthy nvidia-dra-driver-gpu gate_deployment nvidia-dra-driver-gpu/controller 0 fail always nvidia-dra-driver-gpu-controller nvidia-dra-driver ''
  healthy nvidia-dra-driver-gpu gate_crd nvidia-dra-driver-gpu/crd-computedomaincliques 0 fail always computedomaincliques.resource.nvidia.com
  healthy nvidia-dra-driver-gpu gate_crd nvidia-dra-driver-gpu/crd-computedomains 0 fail always computedomains.resource.nvidia.com
  healthy nvidia-dra-driver-gpu gate_daemonset nvidia-dra-driver-gpu/kubelet-plugin 0 fail always nvidia-dra-driver-gpu-kubelet-plugin nvidia-dra-driver 1 ''
  healthy nvsentinel gate_deployment nvsentinel/labeler 0 fail always labeler nvsentinel ''
  healthy nvsentinel gate_daemonset nvsentinel/metadata-collector 0 fail always metadata-collector nvsentinel 1 ''
  healthy nvsentinel gate_daemonset nvsentinel/syslog-health-monitor 0 fail always syslog-health-monitor-regular nvsentinel 1 ''
  healthy prometheus-adapter gate_deployment prometheus-adapter/adapter 0 fail always prometheus-adapter monitoring ''
  healthy prometheus-adapter gate_condition prometheus-adapter/custom-metrics 0 fail always apiservices.v1.apiregistration.k8s.io v1beta1.custom.metrics.k8s.io '' Available True
  healthy prometheus-adapter gate_condition prometheus-adapter/external-metrics 0 fail always apiservices.v1.apiregistration.k8s.io v1beta1.external.metrics.k8s.io '' Available True
}

usage() {
  cat <<'END'
usage: ./deploy.sh [OPTION...]

Installs or updates every release of this bundle, in order, each behind its gate. A release whose content is in the
cluster already is left alone, and what an interrupted run left behind is recovered: run it again after a failure.
Not to be run twice at the same time.

  --only NAME        only this component or release; may be repeated
  --from NAME        only this component or release and what comes after it
  --dry-run          tell what would be done; change nothing
  --health           look at the health checks once; change nothing. Goes with --only, not with --from, --prune, --force
  --force            upgrade releases whose content is unchanged, too
  --prune            remove releases of an earlier state of this bundle that it no longer holds (they are listed otherwise);
                     none when the removal of one of them waits for the cluster: that takes the undeploy.sh of that state
  --context NAME     context of the kubeconfig
  --skip-preflight   do not run preflight.sh first
  --skip-checksums   do not compare the files with checksums.txt first
  --help             this text

Environment: KUBECONFIG, KUBE_CONTEXT, HELM_DRIVER (secret, configmap), GATE_TIMEOUT_SCALE (a factor for the deadlines
of gates: 2 waits twice as long), GATE_POLL (seconds between two looks).

Exit status: 0 done, 1 failed, 2 wrong usage, 3 a gate was not met in time, 4 the preflight refused, 5 files differ from
checksums.txt, 130 interrupted.
END
}

DRY_RUN='' FORCE='' PRUNE='' HEALTH='' PREFLIGHT=yes CHECKSUMS=yes
UNCHANGED=0 FAILED=0 CHECKED=0
ACTION=''

release() { "${ACTION}_release" "$@"; }
gate() { "${ACTION}_gate" "$@"; }

collect_release() { collect "$@"; }
collect_gate() { :; }

deploy_gate() { # ID
  local status=0
  selected "$1" || return 0
  gate_begin "$1" "${NAMESPACE_OF[$1]}"
  gates_of "$1" || status=$?
  case $status in
    0) return 0 ;;
    1) resume "$1" 3 ;;
    *) resume "$1" 1 ;;
  esac
}

deploy_release() { # ID COMPONENT NAMESPACE CONTENT TIMEOUT WAIT TEARDOWN CHART [OPTION...]
  local id=$1 namespace=$3 content=$4 what=upgrading
  selected "$id" || return 0
  STEP=$((STEP + 1))
  read_state "$id" "$namespace"
  # An upgrade that only changes the label TEARDOWN is one: a later --prune goes by it.
  if [[ $STATUS == deployed && $CONTENT == "$content" && $TEARDOWN == "$7" && -z $FORCE ]]; then
    say "[$STEP/$TOTAL] $id: unchanged"
    UNCHANGED=$((UNCHANGED + 1))
    return 0
  fi
  [[ -n $STATUS ]] || what=installing
  if [[ -n $DRY_RUN ]]; then
    say "[$STEP/$TOTAL] $id: $what in namespace $namespace${STATUS:+ (now: revision $REVISION, $STATUS)}"
    return 0
  fi
  say "[$STEP/$TOTAL] $id: $what in namespace $namespace"
  recover "$id" "$namespace"
  gate_begin "$id" "$namespace"
  crds_of "$id" || resume "$id" 1
  helm_install "$id" "$namespace" "$content" "${@:5}" || resume "$id" 1
}

resume() { # ID STATUS
  local how=" --from $1"
  if ((${#ONLY[@]})); then how=$(printf ' --only %s' ${ONLY[@]+"${ONLY[@]}"}); fi
  [[ -z $PRUNE ]] || how=' --prune' # of a whole run only
  [[ -z $FORCE ]] || how+=' --force'
  [[ -n $PREFLIGHT ]] || how+=' --skip-preflight'
  [[ -n $CHECKSUMS ]] || how+=' --skip-checksums'
  say "error: stopped at $1; to go on: ./deploy.sh${KUBE_CONTEXT:+ --context $KUBE_CONTEXT}$how"
  exit "$2"
}

healthy() { # COMPONENT COMMAND...
  local name wanted=''
  for name in ${ONLY[@]+"${ONLY[@]}"}; do
    if [[ $name == "$1" || ${COMPONENT_OF[$name]-} == "$1" ]]; then wanted=yes; fi
  done
  if ((${#ONLY[@]})) && [[ -z $wanted ]]; then return 0; fi
  CHECKED=$((CHECKED + 1))
  "${@:2}" || FAILED=$((FAILED + 1))
}

# Releases with this bundle's label that it no longer holds: our own objects first, then charts, the newest first.
prune() {
  local rows name namespace teardown id left=() waits=()
  rows=$(look get "$(helm_storage)" --all-namespaces -l "owner=helm,bundlec.dev/bundle=$BUNDLE,status!=superseded" -o \
    'jsonpath={range .items[*]}{.metadata.creationTimestamp} {.metadata.namespace} {.metadata.labels.name} {.metadata.labels.bundlec\.dev/teardown}{"\n"}{end}') || {
    say "earlier releases cannot be listed: $(one_line "$rows")"
    return 0
  }
  rows=$(LC_ALL=C sort -r <<<"$rows" | LC_ALL=C awk 'NF >= 3 && !seen[$2 "/" $3]++ {
    print ($4 == "first" ? 0 : $4 == "last" ? 2 : 1), NR, $2, $3, ($4 == "" ? "remove" : $4) }' | LC_ALL=C sort -k1,1n -k2,2n)
  while read -r _ _ namespace name teardown; do
    [[ -n $name ]] || continue
    for id in "${IDS[@]}"; do
      if [[ $id == "$name" && ${NAMESPACE_OF[$id]} == "$namespace" ]]; then continue 2; fi
    done
    if [[ $teardown == keep ]]; then
      say "no longer in this bundle: $namespace/$name; it carries CRDs, so removing it deletes every object of them: helm uninstall $name -n $namespace"
      continue
    fi
    left+=("$namespace $name")
    [[ $teardown != wait ]] || waits+=("$name")
  done <<<"$rows"
  # What waits needs its dependants gone first and its providers there: which those are only its own bundle knows.
  if ((${#waits[@]})); then
    for id in "${left[@]}"; do say "no longer in this bundle: ${id/ //}"; done
    say "  the removal of ${waits[*]} has to wait for the cluster, and this bundle no longer knows for what: check out the last"
    say "  revision of this folder that held it (git log -- bundle.yaml), and run there: ./undeploy.sh$(printf ' --only %s' "${left[@]##* }")"
    if [[ -n $PRUNE && -z $DRY_RUN ]]; then die '--prune removed nothing'; fi
    return 0
  fi
  for id in ${left[@]+"${left[@]}"}; do
    read -r namespace name <<<"$id"
    if [[ -z $PRUNE || -n $DRY_RUN ]]; then
      say "no longer in this bundle: $namespace/$name (./deploy.sh --prune removes it)"
    else
      say "no longer in this bundle: $namespace/$name: removing"
      helm_uninstall "$name" "$namespace" 900 || die "$name: not removed"
    fi
  done
}

main() {
  local started=$SECONDS status=0
  while (($#)); do
    case $1 in
      --only | --from | --context)
        (($# > 1)) || usage_error "$1 wants a value"
        set -- "$1=$2" "${@:3}"
        continue
        ;;
      --only=*) take_value "$1"; ONLY+=("$VALUE") ;;
      --from=*) take_value "$1"; FROM=$VALUE ;;
      --context=*) take_value "$1"; KUBE_CONTEXT=$VALUE ;;
      --dry-run) DRY_RUN=yes ;;
      --health) HEALTH=yes ;;
      --force) FORCE=yes ;;
      --prune) PRUNE=yes ;;
      --skip-preflight) PREFLIGHT='' ;;
      --skip-checksums) CHECKSUMS='' ;;
      -h | --help) usage; exit 0 ;;
      *) usage_error "unknown argument '$1'" ;;
    esac
    shift
  done
  if [[ -n $HEALTH && -n $FROM$PRUNE$FORCE ]]; then usage_error '--health goes with --only, not with --from, --prune or --force'; fi
  if [[ -n $PRUNE ]] && [[ -n $FROM || ${#ONLY[@]} -gt 0 ]]; then usage_error '--prune goes with a whole run only'; fi
  read_table releases
  check_selection
  [[ -z $CHECKSUMS ]] || check_files
  check_tools
  say "bundle $BUNDLE, context ${KUBE_CONTEXT:-$(kubectl config current-context 2>/dev/null || echo of the cluster)}"
  if [[ -n $HEALTH ]]; then
    GATE_MODE='once'
    health
    ((CHECKED)) || usage_error 'no health check is selected'
    say "$((CHECKED - FAILED)) of $CHECKED health checks hold"
    exit $((FAILED > 0))
  fi
  if [[ -n $PREFLIGHT ]]; then
    BUNDLEC_DEPLOYS=yes "$BUNDLE_DIR/preflight.sh" ${KUBE_CONTEXT:+--context "$KUBE_CONTEXT"} || status=$?
    ((status == 0)) || exit "$status"
  fi
  if [[ -n $DRY_RUN ]]; then
    GATE_MODE='peek'
  else
    apply_namespaces || exit 1
  fi
  ACTION=deploy
  releases
  prune
  if [[ -n $DRY_RUN ]]; then
    say "dry run: $((TOTAL - UNCHANGED)) of $TOTAL releases would change; nothing was changed"
  else
    say "done in $((SECONDS - started))s: $((TOTAL - UNCHANGED)) of $TOTAL releases changed, $UNCHANGED unchanged"
  fi
}

main "$@"
