#pragma once

#include <cstdint>
#include <string_view>

#include "cls_zlog/base/object.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/wire/repair_messages.h"
#include "cls_zlog/wire/stripe_messages.h"

// Salvage and heal of records, whose data has checksums of its own (heal.h).
namespace zlog::repair {

// Whether it is the key of a record.
bool is_record(std::string_view name);

Result<SalvageReply> salvage_record(Object& object, uint64_t position);

Result<Empty> heal_record(Object& object, const HealRequest& request);

}  // namespace zlog::repair
