// The table of waits of a PE, as JSON.
#pragma once

#include "job.h"

#include <cstdint>
#include <string>

namespace tdist::sim {

/// The list that tdist_rt_describe_waits() documents, for PE `pe`.
std::string describeWaits(const Job &job, std::int32_t pe);
/// What tdist_rt_peer_finished() documents.
std::string describeFinished(const Job &job, std::int32_t pe);

} // namespace tdist::sim
