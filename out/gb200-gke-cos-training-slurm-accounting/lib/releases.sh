# shellcheck shell=bash disable=SC2034,SC2016,SC1003 # variables that others read; words taken literally
# Helm releases: their state, installing, recovering and removing. Sourced by deploy.sh and undeploy.sh after gates.sh.

BUNDLE=gb200-gke-cos-training-slurm-accounting
HELM_MIN_3=3.18.6
HELM_MIN_4=4.1
HELM_EXTRA_ARGS=()
HELM_WAIT='' # the flag that waits for workloads but not for custom resources

IDS=() # release ids in order, filled by `read_table`
declare -A COMPONENT_OF NAMESPACE_OF
ONLY=() # names given with --only
FROM=''
REACHED=''
VALUE=''
TOTAL=0
STEP=0

die() { # MESSAGE [STATUS]
  say "error: $1"
  exit "${2:-1}"
}

usage_error() {
  say "error: $1"
  say "try ${0##*/} --help"
  exit 2
}

run_helm() { helm ${KUBE_CONTEXT:+--kube-context "$KUBE_CONTEXT"} "$@"; }

# check_tools: kubectl and a helm that is new enough.
check_tools() {
  local version
  scaled 1 >/dev/null || exit 2
  one_cluster || exit 2
  ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 402)) || die "bash 4.2 or newer is needed, this is $BASH_VERSION"
  command -v kubectl >/dev/null || die 'kubectl is not on PATH'
  command -v helm >/dev/null || die 'helm is not on PATH'
  version=$(helm version --template '{{.Version}}') || die 'helm version failed'
  case $version in
    v3.*)
      at_least "$version" "$HELM_MIN_3" || die "helm $HELM_MIN_3 or newer is needed, this is $version"
      HELM_WAIT='--wait'
      ;;
    v4.*)
      at_least "$version" "$HELM_MIN_4" || die "helm $HELM_MIN_4 or newer is needed, this is $version"
      HELM_WAIT='--wait=legacy'
      ;;
    *) die "helm 3 or 4 is needed, this is $version" ;;
  esac
  case ${HELM_DRIVER:-secret} in
    secret | secrets | configmap | configmaps) ;;
    *) die "HELM_DRIVER=$HELM_DRIVER keeps no labels; use secret or configmap" ;;
  esac
  [[ $BUNDLE_DIR != *,* ]] || die "Helm takes the comma in $BUNDLE_DIR for the end of a path: move the bundle"
  LOG=$(mktemp "${TMPDIR:-/tmp}/bundlec.XXXXXX") || die "${TMPDIR:-/tmp} takes no temporary file: set TMPDIR"
}

at_least() { # VERSION MINIMUM
  local have want i
  IFS=. read -r -a have <<<"${1#v}"
  IFS=. read -r -a want <<<"${2#v}"
  for i in 0 1 2; do
    local left=${have[i]:-0} right=${want[i]:-0}
    left=${left%%[!0-9]*} right=${right%%[!0-9]*}
    ((10#${left:-0} == 10#${right:-0})) || { ((10#${left:-0} > 10#${right:-0})); return; }
  done
}

# --- which releases --------------------------------------------------------------------------------------------------

# read_table FUNCTION: the releases that its lines name, in order; nothing is done.
read_table() {
  ACTION=collect
  "$1"
}

collect() { # ID COMPONENT NAMESPACE
  IDS+=("$1")
  COMPONENT_OF[$1]=$2
  NAMESPACE_OF[$1]=$3
}

# check_selection: refuses names that the bundle does not hold, and a selection of nothing.
check_selection() {
  local name id known
  for name in ${ONLY[@]+"${ONLY[@]}"} ${FROM:+"$FROM"}; do
    known=''
    for id in ${IDS[@]+"${IDS[@]}"}; do
      if [[ $name == "$id" || $name == "${COMPONENT_OF[$id]}" ]]; then known=yes; fi
    done
    [[ -n $known ]] || usage_error "no component or release '$name' in this bundle; it holds: ${IDS[*]-}"
  done
  TOTAL=0
  for id in ${IDS[@]+"${IDS[@]}"}; do
    if selected "$id"; then TOTAL=$((TOTAL + 1)); fi
  done
  REACHED=''
  ((TOTAL)) || usage_error 'nothing selected'
}

selected() { # ID
  local name
  if [[ -n $FROM && -z $REACHED ]]; then
    [[ $1 == "$FROM" || ${COMPONENT_OF[$1]} == "$FROM" ]] || return 1
    REACHED=yes
  fi
  ((${#ONLY[@]})) || return 0
  for name in "${ONLY[@]}"; do
    if [[ $name == "$1" || $name == "${COMPONENT_OF[$1]}" ]]; then return 0; fi
  done
  return 1
}

# take_value OPTION=VALUE: sets VALUE, which must not be empty: nothing selected is never everything.
take_value() {
  VALUE=${1#*=}
  [[ -n $VALUE ]] || usage_error "${1%%=*} wants a value"
}

# --- files -----------------------------------------------------------------------------------------------------------

# check_files: the bundle is what was compiled: every file as listed, and none beside them that Helm would read.
check_files() {
  local extra
  (
    cd -- "$BUNDLE_DIR"
    if command -v sha256sum >/dev/null; then
      sha256sum --check --quiet checksums.txt
    else
      shasum -a 256 --check --quiet checksums.txt
    fi
  ) >&2 || die 'the files differ from checksums.txt: compile the bundle again, or pass --skip-checksums' 5
  extra=$(cd -- "$BUNDLE_DIR" && find . ! -type d ! -name '.*' \( -path './components/*' -o -path './namespaces/*' -o -path './lib/*' \) \
    | LC_ALL=C awk 'NR == FNR { listed[substr($0, 67)] = 1; next } { sub(/^\.\//, "") } !($0 in listed)' checksums.txt -)
  [[ -z $extra ]] || die "files that checksums.txt does not list: ${extra//$'\n'/ }" 5
}

# --- state -----------------------------------------------------------------------------------------------------------

REVISION='' STATUS='' CONTENT='' TEARDOWN='' # of the newest revision; empty when there is none. CONTENT: none when others made it
DEPLOYED=''                                  # the newest revision that is deployed

read_state() { # ID NAMESPACE
  local rows revision status content teardown made
  REVISION='' STATUS='' CONTENT='' TEARDOWN='' DEPLOYED=''
  rows=$(release_rows "$1" "$2") || die "$1: its state cannot be read: $(one_line "$rows")"
  while read -r revision status content; do
    [[ -n $revision ]] || continue
    IFS='|' read -r content teardown made <<<"$content"
    REVISION=$revision STATUS=$status CONTENT=$content TEARDOWN=$teardown
    [[ -z $made || $made == "$revision" ]] || CONTENT='' # helmfile writes the others of our labels only
    [[ $status != deployed ]] || DEPLOYED=$revision
  done <<<"$rows"
}

# recover ID NAMESPACE: makes a release that an interrupted run left behind installable. Never uninstalls: that would
# delete CRDs in templates, and every object of them. Objects that are there are adopted by the next installation.
recover() {
  case $STATUS in
    pending-install) forget "$1" "$2" "left $STATUS by an interrupted run" ;;
    failed) [[ $REVISION != 1 ]] || forget "$1" "$2" 'its first installation failed' ;;
    pending-upgrade | pending-rollback)
      say "$1: left $STATUS by an interrupted run: rolling back${DEPLOYED:+ to revision $DEPLOYED}"
      run_helm rollback "$1" ${DEPLOYED:+"$DEPLOYED"} --namespace "$2" --no-hooks >&2 \
        || die "$1: the rollback failed; look at: helm history $1 -n $2"
      ;;
    uninstalling) die "$1: is being removed (status uninstalling); finish that first: ./undeploy.sh --only $1" ;;
  esac
}

forget() { # ID NAMESPACE REASON
  say "$1: $3: forgetting revision $REVISION, installing again"
  kube delete "$(helm_storage)" "sh.helm.release.v1.$1.v$REVISION" -n "$2" >&2 \
    || die "$1: the record of revision $REVISION cannot be deleted"
}

# --- installing and removing -----------------------------------------------------------------------------------------

WATCHER='' LOG=''
clean_up() {
  [[ -z $WATCHER ]] || kill "$WATCHER" 2>/dev/null || :
  [[ -z $LOG ]] || rm -f -- "$LOG"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# helm_install ID NAMESPACE CONTENT TIMEOUT WAIT TEARDOWN CHART [OPTION...]
helm_install() {
  local id=$1 namespace=$2 content=$3 timeout=$4 wait=$5 teardown=$6 chart=$7 attempt forced=''
  shift 7
  [[ $chart != ./* ]] || chart=$BUNDLE_DIR/${chart#./}
  local arguments=(upgrade --install "$id" "$chart" "$@" --namespace "$namespace" --timeout "${timeout}s" --history-max 10)
  local options=() labels="bundlec.dev/bundle=$BUNDLE,bundlec.dev/content=$content,bundlec.dev/teardown=$teardown"
  [[ ! -f $BUNDLE_DIR/components/$id/values.yaml ]] || options+=(--values "$BUNDLE_DIR/components/$id/values.yaml")
  case $wait in
    jobs) options+=("$HELM_WAIT" --wait-for-jobs) ;;
    workloads) options+=("$HELM_WAIT") ;;
  esac
  options+=(${HELM_EXTRA_ARGS[@]+"${HELM_EXTRA_ARGS[@]}"})
  for attempt in 1 2 3 4 5 6; do
    read_state "$id" "$namespace"
    if ((attempt > 1)); then
      recover "$id" "$namespace"
      read_state "$id" "$namespace"
    fi
    watch_pods "$namespace" "$id" &
    WATCHER=$!
    disown "$WATCHER"
    local status=0
    # An interrupt is Helm's to deal with, and what it says then is still shown.
    run_helm "${arguments[@]}" --labels "$labels,bundlec.dev/revision=$((REVISION + 1))" ${options[@]+"${options[@]}"} \
      2>&1 >/dev/null | tee -i -- "$LOG" >&2 || status=$?
    kill "$WATCHER" 2>/dev/null || :
    WATCHER=''
    ((status)) || return 0
    # Helm 3 puts back what others changed in its objects; Helm 4 has to be told, and only when that is so.
    if [[ -z $forced ]] && grep -q 'conflict occurred while applying' "$LOG"; then
      say "$id: others changed fields that the chart sets: taking them back"
      forced=yes
      options+=(--force-conflicts)
      continue
    fi
    # An API server may not know a kind, or a webhook not answer, for a moment after it was installed.
    grep -qE 'no matches for kind|ensure CRDs are installed first|could not find the requested resource|failed calling webhook' "$LOG" || break
    ((attempt < 6)) || break
    say "$id: trying again in ${GATE_POLL}s ($attempt of 5)"
    sleep "$GATE_POLL"
  done
  say "$id: NOT installed"
  show_trouble "$namespace"
  return 1
}

# Tells every half minute which pods keep Helm waiting; ends with the script.
watch_pods() { # NAMESPACE ID
  local pods nap=''
  trap - EXIT
  trap '[[ -z $nap ]] || kill "$nap" 2>/dev/null; exit 0' TERM
  while kill -0 $$ 2>/dev/null; do
    sleep 30 >/dev/null 2>&1 &
    nap=$!
    wait "$nap" || return 0
    pods=$(waiting_pods "$1") || continue
    [[ -z $pods ]] || say "$2: still at it, not ready: ${pods//$'\n'/, }"
  done
}

waiting_pods() { # NAMESPACE: name, ready and status of three pods at most
  local pods
  pods=$(look get pods -n "$1" --no-headers) || return
  LC_ALL=C awk '{ split($2, ready, "/") } ready[1] != ready[2] && $3 != "Completed" && shown++ < 3 { print $1 " " $2 " " $3 }' <<<"$pods"
}

show_trouble() { # NAMESPACE
  local pods events context=${KUBE_CONTEXT:+ --context $KUBE_CONTEXT}
  pods=$(waiting_pods "$1") || return 0
  [[ -z $pods ]] || say "  pods    ${pods//$'\n'/$'\n'          }"
  events=$(look get events -n "$1" --field-selector type=Warning --sort-by .lastTimestamp \
    -o 'jsonpath={range .items[*]}{.involvedObject.kind}/{.involvedObject.name}: {.message}{"\n"}{end}') || return 0
  events=$(tail -n 3 <<<"$events")
  [[ -z $events ]] || say "  events  ${events//$'\n'/$'\n'          }"
  say "  next    kubectl$context -n $1 get pods -o wide"
  say "  next    kubectl$context -n $1 get events --sort-by .lastTimestamp"
}

# Waits as Helm 3 does: the watcher of Helm 4 may stop before it has seen every object, and then fail.
helm_uninstall() { # ID NAMESPACE TIMEOUT
  run_helm uninstall "$1" --namespace "$2" --ignore-not-found "$HELM_WAIT" --cascade foreground --timeout "${3}s" >&2
}
