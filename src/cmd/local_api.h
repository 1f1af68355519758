/* cmd/local_api.h - where the agent's local API is, for who serves it and who asks it. */
#pragma once

#include "base/err.h"

#define LOCAL_API_FOLDER "/run/karve"
#define LOCAL_API_DEFAULT "unix://" LOCAL_API_FOLDER "/agent.sock"

/* The socket's path of "unix:///run/karve/agent.sock", or of a path alone. */
int local_api_path(const char *endpoint, struct buf *out, struct err *err);
bool local_api_is_default(const char *endpoint);
