/* The kubelet is held back by a systemd condition in a drop-in: starting a unit whose condition
 * fails succeeds and does nothing, so bootstrap.sh of a stock image completes. The condition is a
 * file in /run that must *not* be there. If the node reboots before the last part has run (a
 * user's script may want that, and cloud-init would not run the parts again), /run is empty and
 * the kubelet starts with what bootstrap.sh configured: a hold that is forgotten never outlives a
 * boot.
 *
 * The last part has no errexit, and does in a subshell what may fail: whatever the user's part did
 * to the helpers or the drop-ins, the kubelet is started.
 *
 * Nodes have jq (bootstrap.sh needs it), awk and sed; nothing else is assumed. The helpers count
 * against EC2's limit for user data, so they are terse.
 *
 * containerd replaces a plugin's whole section by that of an imported file, so a drop-in for
 * containerd would lose what the image set there. The user's settings are put into config.toml
 * itself instead, line by line (karve_toml_merge): under a table's header that is there, the keys
 * that it has are replaced and others added at its end; other tables go to the end of the file. An
 * element of an array of tables ([[x]]) is always added. A value may go on over lines that do not
 * look like a key. containerd itself judges the result before it is used. */
#include "bootstrap/al2_scripts.h"

const char al2_hold[] =
    "mkdir -p /etc/karve/kubelet.d /etc/systemd/system/kubelet.service.d /run/karve\n"
    "cat > /etc/karve/helpers.sh << 'KARVE'\n"
    "# For user data: . /etc/karve/helpers.sh\n"
    "karve_log() { echo \"karve: $*\" >&2; }\n"
    "# Merge a JSON object into the kubelet configuration, deeply.\n"
    "karve_kubelet_config_merge() {\n"
    "  local f=/etc/kubernetes/kubelet/kubelet-config.json\n"
    "  if jq --argjson new \"$1\" 'if ($new | type) == \"object\" then . * $new else "
    "error(\"not an object\") end' $f > $f.karve && [ -s $f.karve ]; then\n"
    "    mv -f $f.karve $f\n"
    "  else\n"
    "    rm -f $f.karve\n"
    "    karve_log \"not merged into $f: $1\"\n"
    "    return 1\n"
    "  fi\n"
    "}\n"
    "# Add arguments of the kubelet: '--flag=value ...'.\n"
    "karve_kubelet_args() {\n"
    "  local f=/etc/systemd/system/kubelet.service.d/30-kubelet-extra-args.conf old=\n"
    "  case $1 in *[\\'$'\\n']*) karve_log \"not added to the kubelet arguments: $1\"; return 1;; "
    "esac\n"
    "  [ ! -f $f ] || old=$(sed -n \"s/^Environment='KUBELET_EXTRA_ARGS=\\(.*\\)'\\$/\\1 /p\" "
    "$f)\n"
    "  printf \"[Service]\\nEnvironment='KUBELET_EXTRA_ARGS=%s'\\n\" \"$old$1\" > $f\n"
    "}\n"
    "# Merge TOML into the containerd configuration and restart containerd.\n"
    "karve_containerd_config() {\n"
    "  local f=/etc/containerd/config.toml\n"
    "  if printf '%s\\n' \"$1\" > $f.add && awk \"$karve_toml_merge\" $f.add $f > $f.karve && "
    "containerd --config $f.karve config dump > /dev/null; then\n"
    "    rm -f $f.add\n"
    "    mv -f $f.karve $f && systemctl restart containerd\n"
    "  else\n"
    "    rm -f $f.add $f.karve\n"
    "    karve_log \"not merged into $f: $1\"\n"
    "    return 1\n"
    "  fi\n"
    "}\n"
    "karve_toml_merge='\n"
    "function norm(s) { sub(/[ \\t]*(#[^]]*)?$/, \"\", s); gsub(/[ \\t]/, \"\", s); "
    "gsub(/\\047/, \"\\\"\", s); return s }\n"
    "function key(s) { sub(/=.*/, \"\", s); return norm(s) }\n"
    "function rest(t,  i) { for (i = 1; i <= n[t]; i++) if (!done[t, i]++) printf \"%s\", "
    "v[t, i] }\n"
    "{ head = /^[ \\t]*\\[.*\\][ \\t]*(#.*)?$/\n"
    "  pair = /^[ \\t]*(\"[^\"]*\"|\\047[^\\047]*\\047|[A-Za-z0-9_.-])+[ \\t]*=/\n"
    "  plain = !head && !pair && NF && $1 !~ /^#/ }\n"
    "FNR == 1 { t = \"\"; last = 0 }\n"
    "NR == FNR { if (head) { t = norm($0); if (t ~ /^\\[\\[/) t = t NR; if (!(t in n)) { "
    "n[t] = 0; name[++names] = t; title[t] = $0 } }\n"
    "  else if (pair) { k[t, ++n[t]] = key($0); v[t, n[t]] = $0 \"\\n\" }\n"
    "  else if (plain && n[t]) v[t, n[t]] = v[t, n[t]] $0 \"\\n\"\n"
    "  next }\n"
    "head { rest(t); t = norm($0); seen[t] = 1; last = 0 }\n"
    "pair { last = 0; for (i = 1; i <= n[t]; i++) if (k[t, i] == key($0)) { last = 1; "
    "if (!done[t, i]++) printf \"%s\", v[t, i] } }\n"
    "last && (pair || plain) { next }\n"
    "{ print }\n"
    "END { rest(t); for (i = 1; i <= names; i++) if (!(name[i] in seen)) { "
    "print title[name[i]]; rest(name[i]) } }'\n"
    "KARVE\n"
    "touch " AL2_HOLD_FILE "\n"
    "printf '[Unit]\\nConditionPathExists=!" AL2_HOLD_FILE "\\n' > " AL2_HOLD_UNIT "\n"
    "systemctl daemon-reload\n";

const char al2_start[] = "#!/bin/bash\n"
                         "set -x\n"
                         "(\n"
                         "  . /etc/karve/helpers.sh\n"
                         "  LC_ALL=C\n"
                         "  for f in /etc/karve/kubelet.d/*.json; do\n"
                         "    [ ! -f \"$f\" ] || karve_kubelet_config_merge \"$(cat \"$f\")\" || "
                         "echo \"karve: skipped $f\" >&2\n"
                         "  done\n"
                         ")\n"
                         "rm -f " AL2_HOLD_UNIT " " AL2_HOLD_FILE "\n"
                         "systemctl daemon-reload\n"
                         "systemctl enable kubelet\n"
                         "systemctl restart kubelet";
