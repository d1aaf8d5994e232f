# shellcheck shell=bash
# Readiness gates. Sourced by deploy.sh, undeploy.sh, preflight.sh, lib/gate and lib/prepare; changes nothing.
#
# A check is a one-shot `kubectl get` in a loop, until it holds or its deadline passes. The deadlines of one gate count
# from the gate's start. Any kubectl, bash >= 4.2.
#
#   gate_KIND ID TIMEOUT ON_TIMEOUT SCOPE ARGUMENT...     TIMEOUT seconds; ON_TIMEOUT fail, warn; SCOPE always, install
#
# Status: 0 holds, 1 not in time, 2 cannot be looked at (access denied).
# Environment: KUBE_CONTEXT, GATE_TIMEOUT_SCALE (a factor for every deadline), GATE_POLL (seconds between two looks).
# Helm's own HELM_KUBECONTEXT counts where KUBE_CONTEXT is not set: kubectl and Helm never look at two clusters.
: "${KUBE_CONTEXT:=${HELM_KUBECONTEXT:-}}"
: "${GATE_POLL:=5}"
: "${GATE_TIMEOUT_SCALE:=1}"
: "${GATE_STABLE:=2}"     # passes in a row that are asked for: a status may be stale for a moment
: "${GATE_SETTLE:=30}"    # seconds that `every` has to hold at teardown: a controller notices a deletion late
: "${GATE_DENIED_MAX:=3}" # refusals in a row before giving up
GATE_MODE='wait'          # wait; once: look once and judge; peek: look once, tell, and go on
GATE_TEARDOWN=''          # yes: what is gone needs no waiting
GATE_RELEASE=''           # the release that the gate stands in front of, its namespace, and when the gate began
GATE_NAMESPACE=''
GATE_START=0

# shellcheck disable=SC2034 # used by the scripts that source this
BUNDLE_DIR=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)

say() { printf '%s\n' "$*" >&2; }

# one_cluster: refuses what Helm obeys and kubectl does not.
one_cluster() {
  [[ -z ${HELM_KUBEAPISERVER:-} ]] && return
  say 'HELM_KUBEAPISERVER is set: Helm would go to one cluster and kubectl to another; name a context instead'
  return 2
}

kube() { kubectl ${KUBE_CONTEXT:+--context "$KUBE_CONTEXT"} "$@"; }

# look ARGUMENT...: kubectl with a time limit; prints standard output, or the error when it fails (warnings never).
look() {
  local error status=0
  { error=$(kube --request-timeout=20s "$@" 2>&1 >&3 3>&-) || status=$?; } 3>&1
  ((status == 0)) || printf '%s' "$error"
  return "$status"
}

# --- probes: print what is there now; 0 when the check holds ---------------------------------------------------------

probe_crd() { # NAME
  local seen
  seen=$(look get customresourcedefinition "$1" \
    -o 'jsonpath={range .status.conditions[*]}{.type}={.status} {end}') || { echo "$seen"; return 1; }
  echo "${seen:-no conditions yet}"
  [[ " $seen" == *' Established=True '* ]]
}

probe_deployment() { # NAME NAMESPACE MIN_READY (empty: all)
  local seen generation observed want total updated available
  seen=$(look get deployment.apps "$1" -n "$2" -o \
    'jsonpath={.metadata.generation}|{.status.observedGeneration}|{.spec.replicas}|{.status.replicas}|{.status.updatedReplicas}|{.status.availableReplicas}') \
    || { echo "$seen"; return 1; }
  IFS='|' read -r generation observed want total updated available <<<"$seen"
  echo "replicas=${want:-0} updated=${updated:-0} available=${available:-0}${3:+ (min $3)} generation=${observed:-0}/${generation:-0}"
  [[ -n $generation && $generation == "$observed" ]] || return 1
  if [[ -n $3 ]]; then
    ((${available:-0} >= $3))
  else
    ((${want:-0} > 0 && ${updated:-0} >= want && ${available:-0} >= want && ${total:-0} <= updated))
  fi
}

probe_statefulset() { # NAME NAMESPACE MIN_READY (empty: all)
  local seen generation observed want updated ready strategy
  seen=$(look get statefulset.apps "$1" -n "$2" -o \
    'jsonpath={.metadata.generation}|{.status.observedGeneration}|{.spec.replicas}|{.status.updatedReplicas}|{.status.readyReplicas}|{.spec.updateStrategy.type}') \
    || { echo "$seen"; return 1; }
  IFS='|' read -r generation observed want updated ready strategy <<<"$seen"
  echo "replicas=${want:-0} updated=${updated:-0} ready=${ready:-0}${3:+ (min $3)} generation=${observed:-0}/${generation:-0}"
  [[ -n $generation && $generation == "$observed" ]] || return 1
  [[ $strategy == OnDelete ]] && updated=$want
  if [[ -n $3 ]]; then
    ((${ready:-0} >= $3))
  else
    ((${want:-0} > 0 && ${updated:-0} >= want && ${ready:-0} >= want))
  fi
}

probe_daemonset() { # NAME NAMESPACE MIN_NODES MIN_READY (empty: all)
  local seen generation observed want updated available strategy
  seen=$(look get daemonset.apps "$1" -n "$2" -o \
    'jsonpath={.metadata.generation}|{.status.observedGeneration}|{.status.desiredNumberScheduled}|{.status.updatedNumberScheduled}|{.status.numberAvailable}|{.spec.updateStrategy.type}') \
    || { echo "$seen"; return 1; }
  IFS='|' read -r generation observed want updated available strategy <<<"$seen"
  echo "${want:-0} nodes match (min $3) updated=${updated:-0} available=${available:-0}${4:+ (min $4)} generation=${observed:-0}/${generation:-0}"
  [[ -n $generation && $generation == "$observed" ]] || return 1
  ((${want:-0} >= $3)) || return 1
  [[ $strategy == OnDelete ]] && updated=$want # such a DaemonSet is never rolled out by itself
  if [[ -n $4 ]]; then
    ((${available:-0} >= $4))
  else
    ((${updated:-0} >= ${want:-0} && ${available:-0} >= ${want:-0}))
  fi
}

probe_job() { # NAME NAMESPACE
  local seen
  seen=$(look get job.batch "$1" -n "$2" \
    -o 'jsonpath={range .status.conditions[*]}{.type}={.status} {end}') || { echo "$seen"; return 1; }
  echo "${seen:-no conditions yet}"
  [[ " $seen" == *' Complete=True '* ]]
}

# Whether a status is older than the object's spec, for objects that say so.
stale() { # GENERATION OBSERVED
  [[ $1 =~ ^[0-9]+$ && $2 =~ ^[0-9]+$ ]] && (($2 < $1))
}

probe_field() { # RESOURCE NAME NAMESPACE (empty: cluster) JSONPATH OP VALUE
  local seen generation observed
  seen=$(look get "$1" "$2" ${3:+-n "$3"} -o "jsonpath={.metadata.generation}|{.status.observedGeneration}|$4") \
    || { echo "$seen"; return 1; }
  generation=${seen%%|*} seen=${seen#*|}
  observed=${seen%%|*} seen=${seen#*|}
  if [[ $4 == '{.status.'* ]] && stale "$generation" "$observed"; then
    echo "status is for generation $observed, the object has $generation"
    return 1
  fi
  case $5 in
    equals) echo "is '$seen', wants '$6'"; [[ $seen == "$6" ]] ;;
    notEquals) echo "is '$seen', wants another than '$6'"; [[ -n $seen && $seen != "$6" ]] ;;
    present) echo "is '$seen', wants any value"; [[ -n $seen ]] ;;
    *) echo "unknown comparison '$5'"; return 1 ;;
  esac
}

probe_condition() { # RESOURCE NAME NAMESPACE (empty: cluster) TYPE STATUS
  local seen generation observed own status reason
  seen=$(look get "$1" "$2" ${3:+-n "$3"} -o "jsonpath={.metadata.generation}|{.status.observedGeneration}|{range .status.conditions[?(@.type==\"$4\")]}{.observedGeneration}|{.status}|{.reason}: {.message}{end}") \
    || { echo "$seen"; return 1; }
  IFS='|' read -r -d '' generation observed own status reason <<<"$seen" || :
  echo "$4=${status:-absent}, wants $5${reason:+ (${reason%$'\n'})}"
  ! stale "$generation" "${own:-$observed}" && [[ $status == "$5" ]]
}

# Whether the API that a look failed for is not there at all, rather than out of reach for a moment.
absent() { # RESOURCE.GROUP ERROR
  local seen
  case $2 in
    *"doesn't have a resource type"* | *'could not find the requested resource'* | *'no matches for kind'*) ;;
    *) return 1 ;;
  esac
  seen=$(look get customresourcedefinition "$1") && return 1
  [[ $seen == *'(NotFound)'* ]]
}

probe_every() { # RESOURCE NAMESPACE (empty: all) JSONPATH VALUE
  local seen line count=0 bad=0 example='' where=(--all-namespaces)
  [[ -z $2 ]] || where=(-n "$2")
  if ! seen=$(look get "$1" "${where[@]}" -o "jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name}=$3{\"\\n\"}{end}"); then
    echo "$seen"
    [[ -n $GATE_TEARDOWN ]] && absent "${1%%.*}.${1#*.*.}" "$seen"
    return
  fi
  while IFS= read -r line; do
    [[ -n $line ]] || continue
    count=$((count + 1))
    [[ ${line#*=} == "$4" ]] || { bad=$((bad + 1)) example=${example:-$line}; }
  done <<<"$seen"
  if ((count == 0)); then
    echo 'no object of this kind'
    [[ -n $GATE_TEARDOWN ]]
    return
  fi
  echo "$((count - bad)) of $count are '$4'${example:+; not $example}"
  ((bad == 0))
}

probe_gone() { # RESOURCE NAMESPACE (empty: all)
  local seen name names=() where=(--all-namespaces)
  [[ -z $2 ]] || where=(-n "$2")
  if ! seen=$(look get "$1" "${where[@]}" -o 'jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}'); then
    echo "$seen"
    absent "$1" "$seen"
    return
  fi
  while IFS= read -r name; do [[ -z $name ]] || names+=("$name"); done <<<"$seen"
  if ((${#names[@]} == 0)); then
    echo 'none left'
    return 0
  fi
  echo "${#names[@]} left: ${names[*]:0:3}"
  return 1
}

probe_nodes() { # SELECTOR MIN
  local seen count=0 name
  seen=$(look get nodes -l "$1" -o 'jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}') || { echo "$seen"; return 1; }
  while IFS= read -r name; do [[ -z $name ]] || count=$((count + 1)); done <<<"$seen"
  echo "$count nodes match $1 (min $2)"
  ((count >= $2))
}

probe_webhook() { # SERVICE NAMESPACE
  local seen
  seen=$(look get endpointslices.discovery.k8s.io -n "$2" -l "kubernetes.io/service-name=$1" \
    -o 'jsonpath={range .items[*].endpoints[*]}{.addresses[0]}={.conditions.ready} {end}') || { echo "$seen"; return 1; }
  echo "endpoints: ${seen:-none}"
  [[ $seen == *=true\ * || $seen == *=\ * ]] # a condition that is not set counts as ready
}

# --- the loop --------------------------------------------------------------------------------------------------------

gate_crd() { gate_check crd "$@"; }
gate_deployment() { gate_check deployment "$@"; }
gate_statefulset() { gate_check statefulset "$@"; }
gate_daemonset() { gate_check daemonset "$@"; }
gate_job() { gate_check job "$@"; }
gate_field() { gate_check field "$@"; }
gate_condition() { gate_check condition "$@"; }
gate_every() { gate_check every "$@"; }
gate_gone() { gate_check gone "$@"; }
gate_nodes() { gate_check nodes "$@"; }
gate_webhook() { gate_check webhook "$@"; }

# gate_begin RELEASE NAMESPACE: the checks that follow belong to this gate.
gate_begin() { GATE_RELEASE=$1 GATE_NAMESPACE=$2 GATE_START=$SECONDS; }

gate_check() { # KIND ID TIMEOUT ON_TIMEOUT SCOPE ARGUMENT...
  local kind=$1 id=$2 timeout=$3 on_timeout=$4 scope=$5
  shift 5
  local label="gate ${GATE_RELEASE:+$GATE_RELEASE: }$id" need=$GATE_STABLE settle=0 passes=0 denied=0
  local seen last='' since shown deadline
  if [[ $scope == install && $GATE_MODE == wait ]] && release_exists "$GATE_RELEASE" "$GATE_NAMESPACE"; then
    say "$label: not asked for, $GATE_RELEASE is installed"
    return 0
  fi
  if [[ $GATE_MODE != wait ]]; then
    if seen=$("probe_$kind" "$@"); then
      say "  ok    $id: $(one_line "$seen")"
    elif [[ $GATE_MODE == peek ]]; then
      say "  wait  $id: $(one_line "$seen")"
    else
      say "  FAIL  $id: $(one_line "$seen")"
      return 1
    fi
    return 0
  fi
  timeout=$(scaled "$timeout") || return
  deadline=$((GATE_START + timeout)) since=$SECONDS shown=$SECONDS
  case $kind in crd | gone) need=1 ;; esac
  if [[ -n $GATE_TEARDOWN && $kind == every ]]; then settle=$GATE_SETTLE; fi
  while :; do
    if seen=$("probe_$kind" "$@"); then
      denied=0 passes=$((passes + 1))
      ((passes > 1)) || since=$SECONDS
      if ((passes >= need && SECONDS - since >= settle)); then
        say "$label: holds after $((SECONDS - GATE_START))s: $(one_line "$seen")"
        return 0
      fi
    else
      passes=0
      case $seen in
        *'(Forbidden)'* | *'(Unauthorized)'* | *'must be logged in'*) denied=$((denied + 1)) ;;
        *) denied=0 ;;
      esac
      if ((denied >= GATE_DENIED_MAX)); then
        say "$label: access denied: $(one_line "$seen")"
        [[ $on_timeout != warn ]] || { say "$label: WARNING: going on without it"; return 0; }
        return 2
      fi
    fi
    if ((passes == 0 || settle > 0)) && { [[ $seen != "$last" ]] || ((SECONDS - shown >= 60)); }; then
      say "$label: $((SECONDS - GATE_START))s of ${timeout}s: $(one_line "$seen")"
      last=$seen shown=$SECONDS
    fi
    if ((SECONDS >= deadline && passes == 0)); then
      say "$label: NOT met within ${timeout}s"
      diagnose "$kind" "$seen" "$@"
      [[ $on_timeout != warn ]] || { say "$label: WARNING: going on without it"; return 0; }
      return 1
    fi
    sleep "$GATE_POLL"
  done
}

# scaled SECONDS: the deadline as GATE_TIMEOUT_SCALE has it; 2 when that or GATE_POLL is no number.
scaled() {
  if [[ ! $GATE_TIMEOUT_SCALE =~ ^[0-9]+(\.[0-9]+)?$ ]]; then
    say "GATE_TIMEOUT_SCALE is '$GATE_TIMEOUT_SCALE', wants a number such as 2 or 0.5"
    return 2
  fi
  # What `sleep` refuses, or does not sleep for, would have a loop ask the API server without a pause.
  if [[ ! $GATE_POLL =~ ^[0-9]+(\.[0-9]+)?$ || ! $GATE_POLL =~ [1-9] ]]; then
    say "GATE_POLL is '$GATE_POLL', wants a number of seconds above 0"
    return 2
  fi
  LC_ALL=C awk -v seconds="$1" -v scale="$GATE_TIMEOUT_SCALE" 'BEGIN { printf "%d\n", seconds * scale }'
}

one_line() {
  local text=${1//$'\n'/ }
  ((${#text} <= 300)) || text="${text:0:297}..."
  printf '%s' "$text"
}

# release_rows NAME NAMESPACE: `REVISION STATUS CONTENT|TEARDOWN|MADE` of the stored revisions of a Helm release, oldest first;
# without those that a later one replaced, since kubectl loads what it lists, charts included. MADE is the revision that
# these labels were written for: Helm hands labels on to revisions that others make.
release_rows() {
  look get "$(helm_storage)" -n "$2" -l "owner=helm,name=$1,status!=superseded" -o \
    'jsonpath={range .items[*]}{.metadata.labels.version} {.metadata.labels.status} {.metadata.labels.bundlec\.dev/content}|{.metadata.labels.bundlec\.dev/teardown}|{.metadata.labels.bundlec\.dev/revision}{"\n"}{end}' \
    | LC_ALL=C sort -n
}

release_exists() { # NAME NAMESPACE: whether some revision is deployed
  local rows
  rows=$(release_rows "$1" "$2") || return 1
  [[ $rows =~ (^|$'\n')[0-9]+\ deployed\  ]]
}

# foreign_releases BUNDLE NAMESPACE/NAME...: those of the Helm releases that are in the cluster and whose newest record does
# not carry the label of the bundle, a line each: NAMESPACE/NAME, and the bundle that it carries, if any.
foreign_releases() {
  local rows name called='' bundle=$1
  shift
  for name in "$@"; do called+=,${name##*/}; done
  rows=$(look get "$(helm_storage)" --all-namespaces -l "owner=helm,status!=superseded,status!=uninstalled,name in (${called#,})" -o \
    'jsonpath={range .items[*]}{.metadata.labels.version} {.metadata.namespace}/{.metadata.labels.name} {.metadata.labels.bundlec\.dev/bundle}{"\n"}{end}') \
    || { echo "$rows"; return 1; }
  LC_ALL=C sort -rn <<<"$rows" | LC_ALL=C awk -v own="$bundle" -v wanted="$*" '
    BEGIN { total = split(wanted, list, " "); for (i = 1; i <= total; i++) want[list[i]] = 1 }
    ($2 in want) && !seen[$2]++ && $3 != own { print $2, $3 }'
}

helm_storage() {
  case ${HELM_DRIVER:-secret} in
    configmap | configmaps) echo configmap ;;
    *) echo secret ;;
  esac
}

# --- diagnosis -------------------------------------------------------------------------------------------------------

diagnose() { # KIND SEEN ARGUMENT...
  local kind=$1 seen=$2 context=${KUBE_CONTEXT:+ --context $KUBE_CONTEXT} at=''
  shift 2
  case $kind in
    crd)
      say "  object  customresourcedefinition $1"
      next "kubectl$context get customresourcedefinition $1 -o yaml" "kubectl$context get events -A --field-selector type=Warning"
      ;;
    deployment | statefulset | daemonset | job)
      say "  object  $kind $2/$1"
      pods_of "$kind" "$1" "$2"
      next "kubectl$context -n $2 describe $kind $1" "kubectl$context -n $2 get pods -o wide"
      if [[ $kind == daemonset && $seen == '0 nodes match'* ]]; then
        say "          no node matches the DaemonSet's node selector, affinity and tolerations: is the pool scaled to zero?"
        next "kubectl$context -n $2 get daemonset $1 -o jsonpath={.spec.template.spec.nodeSelector}" "kubectl$context get nodes --show-labels"
      fi
      ;;
    field | condition)
      at=${3:+ -n $3}
      say "  object  $1 ${3:+$3/}$2"
      say "  status  $(one_line "$(look get "$1" "$2" ${3:+-n "$3"} -o 'jsonpath={.status}' || :)")"
      next "kubectl$context$at get $1 $2 -o yaml" "kubectl$context$at describe $1 $2"
      ;;
    every | gone) next "kubectl$context get $1 ${2:+-n }${2:--A}" ;;
    nodes) next "kubectl$context get nodes -l '$1' --show-labels" ;;
    webhook) next "kubectl$context -n $2 get service,endpointslices,pods" ;;
  esac
  say "  last    $(one_line "$seen")"
}

next() {
  local command
  for command in "$@"; do say "  next    $command"; done
}

# The pods of a workload that are not ready, three at most.
pods_of() { # KIND NAME NAMESPACE
  local selector pods
  # shellcheck disable=SC2016 # the dollars are the template's
  selector=$(look get "$1" "$2" -n "$3" -o 'go-template={{range $key, $value := .spec.selector.matchLabels}}{{$key}}={{$value}},{{end}}') || return 0
  [[ -n $selector ]] || return 0
  pods=$(look get pods -n "$3" -l "${selector%,}" --no-headers) || return 0
  LC_ALL=C awk '{ split($2, ready, "/") } ready[1] != ready[2] && $3 != "Completed" && shown++ < 3 { print "  pod     " $1 " " $2 " " $3 " restarts=" $4 }' <<<"$pods" >&2
}
