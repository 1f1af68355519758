/* bootstrap/al2_scripts.h - what karve runs on a node of AL2 besides bootstrap.sh: the shell
 * texts. */
#pragma once

#define AL2_HOLD_FILE "/run/karve/hold-kubelet"
#define AL2_HOLD_UNIT "/etc/systemd/system/kubelet.service.d/99-karve-hold.conf"

extern const char al2_hold[];  /* helpers in place, the kubelet held back: before bootstrap.sh */
extern const char al2_start[]; /* drop-ins merged, the kubelet let go and started: the last part */
