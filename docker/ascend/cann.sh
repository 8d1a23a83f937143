#!/usr/bin/env bash
# Puts CANN into effect, once in a tree of processes. To be sourced; BASH_ENV names it.
if [ -z "${ASCEND_HOME_PATH:-}" ]; then
  for triton_dist_script in \
    /usr/local/Ascend/cann/set_env.sh /usr/local/Ascend/ascend-toolkit/set_env.sh \
    "${HOME:-/root}/Ascend/cann/set_env.sh" "${HOME:-/root}/Ascend/ascend-toolkit/set_env.sh"; do
    if [ -f "$triton_dist_script" ]; then
      # shellcheck source=/dev/null
      . "$triton_dist_script"
      break
    fi
  done
  unset triton_dist_script
fi
