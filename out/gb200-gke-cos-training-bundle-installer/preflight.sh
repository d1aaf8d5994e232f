#!/usr/bin/env bash
# Looks at a cluster before the bundle gb200-gke-cos-training-bundle-installer is put on it; changes nothing. `./preflight.sh --help` tells how.
# shellcheck disable=SC2016,SC1003 # words of the recipe, taken literally
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib/gates.sh
source "$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)/lib/gates.sh"

BUNDLE=gb200-gke-cos-training-bundle-installer
NODES='!node-role.kubernetes.io/control-plane' # the nodes whose operating system and kernel count
EMPTY_POOL=error # what no such node is: error or warning
RELEASES=( # namespace/name of this bundle's Helm releases
  cert-manager/cert-manager
  kube-system/gcp-driver-installer
  kube-system/gke-gb200-rdma
  node-feature-discovery/nfd
  nodewright/nodewright-operator
  nodewright/nodewright-customizations
  monitoring/prometheus-operator-crds
  monitoring/kube-prometheus-stack
  gpu-operator/gpu-operator-pre
  gpu-operator/gpu-operator
  monitoring/k8s-ephemeral-storage-metrics
  kai-scheduler/kai-scheduler
  nvidia-dra-driver/nvidia-dra-driver-gpu
  nvsentinel/nvsentinel
  monitoring/prometheus-adapter
)
APPLICATIONS=( # its names under Argo CD
  gktbi-cert-manager
  gktbi-gcp-driver-installer
  gktbi-gke-gb200-rdma
  gktbi-nfd
  gktbi-nodewright-operator
  gktbi-nodewright-customizations
  gktbi-prometheus-operator-crds
  gktbi-kube-prometheus-stack
  gktbi-gpu-operator
  gktbi-k8s-ephemeral-storage-metrics
  gktbi-kai-scheduler
  gktbi-nvidia-dra-driver-gpu
  gktbi-nvsentinel
  gktbi-prometheus-adapter
)
HELMRELEASES=( # its names under Flux
  gktbi-cert-manager
  gktbi-gcp-driver-installer
  gktbi-gke-gb200-rdma
  gktbi-nfd
  gktbi-nodewright-operator
  gktbi-nodewright-customizations
  gktbi-prometheus-operator-crds
  gktbi-kube-prometheus-stack
  gktbi-gpu-operator-pre
  gktbi-gpu-operator
  gktbi-k8s-ephemeral-storage-metrics
  gktbi-kai-scheduler
  gktbi-nvidia-dra-driver-gpu
  gktbi-nvsentinel
  gktbi-prometheus-adapter
)

# need_KIND NAME SEVERITY TEXT ...; TEXT says what to do when it does not hold
checks() {
  need_version K8s.server.version error 'NVLink between nodes needs a ComputeDomain, which needs resource.k8s.io/v1; upgrade the control plane.' '>= 1.34'
  need_label NodeTopology.gpu-nodes.label error 'Create the GPU pools with gpu-driver-version=disabled and the label gke-no-default-nvidia-gpu-device-plugin=true, or choose gpuStack=gke-default.' gke-no-default-nvidia-gpu-device-plugin=true
  need_check GKENetworkParamSet.networking.gke.io error 'the cluster must provide GKENetworkParamSet.networking.gke.io' crd gkenetworkparamsets.networking.gke.io
  need_check Network.networking.gke.io error 'the cluster must provide Network.networking.gke.io' crd networks.networking.gke.io
  need_singleton 'ValidatingWebhookConfiguration cert-manager-webhook' error 'cert-manager must be the only owner of ValidatingWebhookConfiguration cert-manager-webhook: remove the other installation' admissionregistration.k8s.io ValidatingWebhookConfiguration cert-manager-webhook
  need_check opted-out-node-pool error 'With gpuStack=bundle-installer: GPU node pools are created with gpu-driver-version=disabled and the label gke-no-default-nvidia-gpu-device-plugin=true. The DaemonSet runs on no other node.' nodes 'cloud.google.com/gke-accelerator,!cloud.google.com/gke-gpu-driver-version,gke-no-default-nvidia-gpu-device-plugin=true,!cloud.google.com/gke-confidential-nodes-instance-type' 1
  need_check paramset-gvnic-1 error 'GKENetworkParamSet gvnic-1 exists under exactly this name with deviceMode NetDevice.' field gkenetworkparamsets.v1.networking.gke.io gvnic-1 '' '{.spec.deviceMode}' equals NetDevice
  need_check network-gvnic-1 error 'Network gvnic-1 exists under exactly this name, type Device, and its parametersRef names GKENetworkParamSet gvnic-1.' field networks.v1.networking.gke.io gvnic-1 '' '{.spec.parametersRef.name}' equals gvnic-1
  need_check paramset-rdma-0 error 'GKENetworkParamSet rdma-0 exists under exactly this name with deviceMode RDMA.' field gkenetworkparamsets.v1.networking.gke.io rdma-0 '' '{.spec.deviceMode}' equals RDMA
  need_check network-rdma-0 error 'Network rdma-0 exists under exactly this name, type Device, and its parametersRef names GKENetworkParamSet rdma-0.' field networks.v1.networking.gke.io rdma-0 '' '{.spec.parametersRef.name}' equals rdma-0
  need_check paramset-rdma-1 error 'GKENetworkParamSet rdma-1 exists under exactly this name with deviceMode RDMA.' field gkenetworkparamsets.v1.networking.gke.io rdma-1 '' '{.spec.deviceMode}' equals RDMA
  need_check network-rdma-1 error 'Network rdma-1 exists under exactly this name, type Device, and its parametersRef names GKENetworkParamSet rdma-1.' field networks.v1.networking.gke.io rdma-1 '' '{.spec.parametersRef.name}' equals rdma-1
  need_check paramset-rdma-2 error 'GKENetworkParamSet rdma-2 exists under exactly this name with deviceMode RDMA.' field gkenetworkparamsets.v1.networking.gke.io rdma-2 '' '{.spec.deviceMode}' equals RDMA
  need_check network-rdma-2 error 'Network rdma-2 exists under exactly this name, type Device, and its parametersRef names GKENetworkParamSet rdma-2.' field networks.v1.networking.gke.io rdma-2 '' '{.spec.parametersRef.name}' equals rdma-2
  need_check paramset-rdma-3 error 'GKENetworkParamSet rdma-3 exists under exactly this name with deviceMode RDMA.' field gkenetworkparamsets.v1.networking.gke.io rdma-3 '' '{.spec.deviceMode}' equals RDMA
  need_check network-rdma-3 error 'Network rdma-3 exists under exactly this name, type Device, and its parametersRef names GKENetworkParamSet rdma-3.' field networks.v1.networking.gke.io rdma-3 '' '{.spec.parametersRef.name}' equals rdma-3
  need_singleton 'ClusterPolicy cluster-policy' error 'gpu-operator must be the only owner of ClusterPolicy cluster-policy: remove the other installation' nvidia.com ClusterPolicy
  need_singleton 'APIService v1beta1.custom.metrics.k8s.io' error 'prometheus-adapter must be the only owner of APIService v1beta1.custom.metrics.k8s.io: remove the other installation' apiregistration.k8s.io APIService v1beta1.custom.metrics.k8s.io
  need_singleton 'APIService v1beta1.external.metrics.k8s.io' error 'prometheus-adapter must be the only owner of APIService v1beta1.external.metrics.k8s.io: remove the other installation' apiregistration.k8s.io APIService v1beta1.external.metrics.k8s.io
}

usage() {
  cat <<'END'
usage: ./preflight.sh [--context NAME]

Looks at what this bundle expects of the cluster: versions, nodes, APIs that the cluster itself provides, and owners of
what may exist once only. Reads only.

Exit status: 0 nothing speaks against it, 1 the cluster cannot be read, 2 wrong usage, 4 something must be settled first.
END
}

REFUSED=0 WARNED=0
FOREIGN=() # namespace/name of releases that have the names of ours and are somebody else's
NODE_ROWS='' # name, OS image and kernel of the nodes, a line each

passed() { say "  ok    $1"; }

not_checked() { say "  --    $1"; }

refuse() { # SEVERITY MESSAGE TEXT
  if [[ $1 == error ]]; then
    REFUSED=$((REFUSED + 1))
    say "  FAIL  $2"
  else
    WARNED=$((WARNED + 1))
    say "  warn  $2"
  fi
  say "        $3"
}

# judge NAME SEVERITY TEXT VALUE READING [WHERE]: one reading against a constraint.
judge() {
  local status=0 what="$1 $4: ${6:+$6: }$5"
  satisfies "$5" "$4" || status=$?
  case $status in
    0) passed "$what" ;;
    1) refuse "$2" "$what" "$3" ;;
    *) refuse "$2" "$what is no version" "$3" ;;
  esac
}

need_version() { # NAME SEVERITY TEXT VALUE
  judge "$1" "$2" "$3" "$4" "$SERVER_VERSION"
}

need_os() { # NAME SEVERITY TEXT VALUE
  each_node "$1" "$2" "$3" "$4"
}

need_kernel() { # NAME SEVERITY TEXT VALUE
  each_node "$1" "$2" "$3" "$4"
}

# each_node NAME SEVERITY TEXT VALUE: what the nodes read, grouped by reading.
each_node() {
  local node image kernel reading number seen=() i
  declare -A nodes=() count=()
  [[ -n $NODE_ROWS ]] || { no_nodes "$1" "$4" "$3"; return; }
  while IFS=$'\t' read -r node image kernel; do
    case $1 in
      OS.release.ID) reading=$(os_id "$image") ;;
      OS.release.VERSION_ID) reading=$(os_version "$image") ;;
      *) reading=$kernel ;;
    esac
    [[ -n $reading ]] || reading="?$image"
    number=$((${count[$reading]:-0} + 1))
    count[$reading]=$number
    ((number > 1)) || seen+=("$reading")
    ((number > 3)) || nodes[$reading]=${nodes[$reading]:+${nodes[$reading]} }$node
  done <<<"$NODE_ROWS"
  for i in "${seen[@]}"; do
    if [[ $i == '?'* ]]; then
      not_checked "$1 $4: cannot be told from '${i#?}' (${count[$i]} nodes: ${nodes[$i]})"
    else
      judge "$1" "$2" "$3" "$4" "$i" "${count[$i]} nodes (${nodes[$i]})"
    fi
  done
}

no_nodes() { # NAME VALUE TEXT
  refuse "$EMPTY_POOL" "$1 $2: no node matches ${NODES:-the accelerated nodes}" "$3"
}

os_id() { # IMAGE: what ID of /etc/os-release says on such a node
  case ${1,,} in
    ubuntu*) echo ubuntu ;;
    container-optimized*) echo cos ;;
    'red hat enterprise linux coreos'*) echo rhcos ;;
    'red hat enterprise linux'*) echo rhel ;;
    'amazon linux'*) echo amzn ;;
    'azure linux'* | 'microsoft azure linux'*) echo azurelinux ;;
    bottlerocket*) echo bottlerocket ;;
    debian*) echo debian ;;
    flatcar*) echo flatcar ;;
    'oracle linux'*) echo ol ;;
    rocky*) echo rocky ;;
    'suse linux enterprise server'*) echo sles ;;
    talos*) echo talos ;;
  esac
}

os_version() { # IMAGE: what VERSION_ID of /etc/os-release says on such a node
  local parts='[0-9]+(\.[0-9]+)*'
  case ${1,,} in
    ubuntu*) parts='[0-9]+\.[0-9]+' ;;
    'amazon linux'* | debian*) parts='[0-9]+' ;;
  esac
  if [[ $1 =~ $parts ]]; then echo "${BASH_REMATCH[0]}"; fi
}

# need_label NAME SEVERITY TEXT VALUE: `key=value` on every GPU node of GKE, or `!key` on none.
need_label() {
  local gpu=cloud.google.com/gke-accelerator total bad
  total=$(node_names "$gpu") || { refuse "$2" "$1 $4: $(one_line "$total")" "$3"; return; }
  if [[ -z $total ]]; then
    refuse "$EMPTY_POOL" "$1 $4: no node carries $gpu" "$3"
    return
  fi
  case $4 in
    '!'*) bad=$(node_names "$gpu,${4#!}") ;;
    *) bad=$(node_names "$gpu,${4%%=*}!=${4#*=}") ;;
  esac || { refuse "$2" "$1 $4: $(one_line "$bad")" "$3"; return; }
  if [[ -z $bad ]]; then
    passed "$1 $4: $(wc -w <<<"$total" | tr -d ' ') nodes"
  else
    refuse "$2" "$1 $4: not so on $(one_line "$bad")" "$3"
  fi
}

node_names() { look get nodes -l "$1" -o 'jsonpath={range .items[*]}{.metadata.name} {end}'; }

need_check() { # NAME SEVERITY TEXT KIND ARGUMENT...
  local seen
  if seen=$("probe_$4" "${@:5}"); then
    passed "$1: $(one_line "$seen")"
  else
    refuse "$2" "$1: $(one_line "$seen")" "$3"
  fi
}

# Releases under the names of ours that another bundle, or a person, installed. What Flux installs carries no label of this
# bundle, but its HelmRelease does; Argo CD makes no releases.
check_releases() {
  local rows name bundle flux='' asked=''
  ((${#RELEASES[@]})) || return 0
  rows=$(foreign_releases "$BUNDLE" "${RELEASES[@]}") || { not_checked "owners of Helm releases: $(one_line "$rows")"; return; }
  while read -r name bundle; do
    [[ -n $name ]] || continue
    if [[ -z $bundle && -z $asked ]]; then
      asked=yes
      flux=$(look get helmreleases.helm.toolkit.fluxcd.io --all-namespaces -l "bundlec.dev/bundle=$BUNDLE" -o \
        'jsonpath={range .items[*]}{.spec.storageNamespace}/{.spec.releaseName}{"\n"}{end}') || flux=''
    fi
    if [[ -z $bundle && $'\n'$flux$'\n' == *$'\n'"$name"$'\n'* ]]; then
      [[ -n ${BUNDLEC_DEPLOYS:-} ]] || continue
      FOREIGN+=("$name")
      refuse error "the Helm release $name is kept by Flux" \
        'let Flux deploy the bundle, or take it from Flux first (flux/remove.sh); ./deploy.sh --skip-preflight writes beside it'
      continue
    fi
    FOREIGN+=("$name")
    refuse error "the Helm release $name is installed by ${bundle:+the bundle }${bundle:-somebody else}" \
      "remove it (helm uninstall ${name#*/} -n ${name%%/*}) or leave its component out; ./deploy.sh --skip-preflight takes it over"
  done <<<"$rows"
}

# need_singleton NAME SEVERITY TEXT GROUP KIND [OBJECT]: no object of a kind that may exist once only belongs to somebody
# else; of a kind that others have objects of, too, the one called OBJECT.
need_singleton() {
  local seen line name bundle release application flux foreign=()
  if ! seen=$(look get "$5${4:+.$4}" --all-namespaces -o 'jsonpath={range .items[*]}{.metadata.name}|{.metadata.labels.bundlec\.dev/bundle}|{.metadata.annotations.meta\.helm\.sh/release-namespace}/{.metadata.annotations.meta\.helm\.sh/release-name}|{.metadata.annotations.argocd\.argoproj\.io/tracking-id}|{.metadata.labels.helm\.toolkit\.fluxcd\.io/name}|{.metadata.labels.app\.kubernetes\.io/instance}{"\n"}{end}'); then
    case $seen in
      *"doesn't have a resource type"* | *'could not find the requested resource'*) passed "$1: none yet" ;;
      *) not_checked "$1: $(one_line "$seen")" ;;
    esac
    return 0
  fi
  while IFS='|' read -r name bundle release application flux line; do
    [[ -n $name && ( -z ${6-} || $name == "$6" ) ]] || continue
    if among "$release" ${FOREIGN[@]+"${FOREIGN[@]}"}; then
      : # refused as a release, too
    elif [[ $bundle == "$BUNDLE" ]] || among "$release" "${RELEASES[@]}" || among "$flux" "${HELMRELEASES[@]}" \
      || among "${application%%:*}" "${APPLICATIONS[@]}" || among "$line" "${APPLICATIONS[@]}"; then
      continue
    fi
    [[ $release != / ]] || release=''
    foreign+=("$name${bundle:+ of the bundle $bundle}${release:+ of the release $release}")
  done <<<"$seen"
  if ((${#foreign[@]})); then
    refuse "$2" "$1: there is another one: ${foreign[*]}" "$3"
  else
    passed "$1: no other owner"
  fi
}

among() { # WORD ITEM...
  local item
  for item in "${@:2}"; do
    if [[ -n $1 && $1 == "$item" ]]; then return 0; fi
  done
  return 1
}

unchecked() { # NAME SEVERITY TEXT VALUE
  not_checked "$1 $4: not checked; see to it yourself"
}

# --- constraints -----------------------------------------------------------------------------------------------------

# satisfies READING EXPRESSION: 0 yes, 1 no, 2 cannot be decided. `[operator] operand`, several joined by commas; without an
# operator an exact string. Versions are compared at the lower precision of the two sides, so `> 1.34` is false for 1.34.9;
# == and != take missing numbers as 0.
satisfies() {
  local reading expression=$2 term terms
  reading=$(trim "$1")
  expression=$(trim "$2")
  if [[ ! $expression =~ ^(\>|\<|=|!)=|^[\>\<] ]]; then
    [[ $reading == "$expression" ]]
    return
  fi
  IFS=, read -r -a terms <<<"$expression"
  for term in "${terms[@]}"; do
    holds "$reading" "$(trim "$term")" || return
  done
}

holds() { # READING TERM
  local operator=${2:0:2} operand have want i limit order=0
  [[ $operator == ?= ]] || operator=${2:0:1}
  operand=$(trim "${2:${#operator}}")
  have=$(numbers "$1") || have=''
  want=$(numbers "$operand") || want=''
  if [[ $operator == == || $operator == != ]]; then
    if [[ -z $have || -z $want || $operand != *.* ]]; then
      if [[ $1 == "$operand" ]]; then [[ $operator == == ]]; else [[ $operator == != ]]; fi
      return
    fi
    limit=3
  elif [[ -z $have || -z $want ]]; then
    return 2
  fi
  read -r -a have <<<"$have"
  read -r -a want <<<"$want"
  if [[ -z ${limit:-} ]]; then
    limit=${#have[@]}
    ((limit <= ${#want[@]})) || limit=${#want[@]}
  fi
  for ((i = 0; i < limit; i++)); do
    if ((10#${have[i]:-0} > 10#${want[i]:-0})); then order=1 i=3; fi
    if ((i < 3 && 10#${have[i]:-0} < 10#${want[i]:-0})); then order=-1 i=3; fi
  done
  case $operator in
    '>=') ((order >= 0)) ;;
    '<=') ((order <= 0)) ;;
    '>') ((order > 0)) ;;
    '<') ((order < 0)) ;;
    '==') ((order == 0)) ;;
    '!=') ((order != 0)) ;;
  esac
}

numbers() { # VERSION: its one to three numbers
  [[ $1 =~ ^v?([0-9]{1,18}(\.[0-9]{1,18}){0,2})([-+].*)?$ ]] || return 1
  tr . ' ' <<<"${BASH_REMATCH[1]}"
}

trim() {
  local text=$1
  text=${text#"${text%%[![:space:]]*}"}
  printf '%s' "${text%"${text##*[![:space:]]}"}"
}

main() {
  local seen
  while (($#)); do
    case $1 in
      --context)
        (($# > 1)) && [[ -n $2 ]] || { say 'error: --context wants a value'; exit 2; }
        KUBE_CONTEXT=$2
        shift
        ;;
      --context=?*) KUBE_CONTEXT=${1#*=} ;;
      -h | --help) usage; exit 0 ;;
      *) say "error: unknown argument '$1'"; exit 2 ;;
    esac
    shift
  done
  command -v kubectl >/dev/null || { say 'error: kubectl is not on PATH'; exit 1; }
  say "preflight of the bundle $BUNDLE"
  seen=$(look get --raw /version) || { say "error: the cluster cannot be read: $(one_line "$seen")"; exit 1; }
  [[ $seen =~ \"gitVersion\":\ *\"([^\"]+)\" ]] || { say 'error: the cluster does not tell its version'; exit 1; }
  SERVER_VERSION=${BASH_REMATCH[1]}
  NODE_ROWS=$(look get nodes ${NODES:+-l "$NODES"} \
    -o 'jsonpath={range .items[*]}{.metadata.name}{"\t"}{.status.nodeInfo.osImage}{"\t"}{.status.nodeInfo.kernelVersion}{"\n"}{end}') \
    || { say "error: the nodes cannot be read: $(one_line "$NODE_ROWS")"; exit 1; }
  check_releases
  checks
  if ((REFUSED)); then
    say "preflight: $REFUSED to settle first, $WARNED warnings"
    exit 4
  fi
  say "preflight: nothing speaks against it, $WARNED warnings"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then main "$@"; fi
