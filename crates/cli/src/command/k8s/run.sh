#!/bin/sh
# Runs the jobs of this folder one after the other, and ends with the first that fails. To go on
# with a run that broke, remove the failed job and start this again.
set -eu
cd "$(dirname "$0")"
kubectl@NAMESPACE apply --filename 0-network.json
for file in [1-9]-*.json; do
    kubectl@NAMESPACE apply --filename "$file"
    missed=0
    while :; do
        state=$(kubectl@NAMESPACE get --filename "$file" --output \
            jsonpath='{.status.conditions[?(@.status=="True")].type}') && missed=0 || missed=$((missed + 1))
        case $state in
            *Complete*) break ;;
            *Failed*) echo "$file failed; 'kubectl@NAMESPACE describe --filename $file' says why" >&2; exit 1 ;;
        esac
        # The service may be away for a minute or two.
        [ "$missed" -lt 30 ] || { echo "kubectl did not answer 30 times; $file goes on" >&2; exit 1; }
        sleep "${VOLERY_POLL:-5}"
    done
    echo "$file is complete"
done
