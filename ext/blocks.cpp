#include "blocks.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include "chunks.h"
#include "host_call.h"

namespace pb {

int run_blocks(const Blocks& blocks, int (*kernel)(void**, void**, void*), void* const* pointers) {
    const size_t count = blocks.steps.size();
    std::atomic<int> result{0};
    auto run = [&](int64_t begin, int64_t end) {
        alignas(64) unsigned char arena[Blocks::kMaxArena];
        std::vector<void*> at(count);
        for (int64_t b = begin; b < end; ++b) {
            if (result.load(std::memory_order_relaxed)) return;
            if (pb_interrupt_pending()) {
                result.store(2);
                return;
            }
            const int64_t start = b * blocks.length, length = std::min(blocks.length, blocks.total - start);
            for (size_t i = 0; i < count; ++i) at[i] = static_cast<char*>(pointers[i]) + start * blocks.steps[i];
            std::unique_ptr<unsigned char[]> whole;
            if (length < blocks.length) {
                size_t bytes = 64;
                for (int64_t step : blocks.steps) bytes += (size_t(blocks.length * step) + 63) & ~size_t(63);
                whole.reset(new unsigned char[bytes]());
                auto* place = reinterpret_cast<unsigned char*>((reinterpret_cast<uintptr_t>(whole.get()) + 63) & ~63ull);
                for (size_t i = 0; i < count; ++i) {
                    if (!blocks.steps[i]) continue;
                    if (i < blocks.inputs) memcpy(place, at[i], size_t(length * blocks.steps[i]));
                    at[i] = place;
                    place += (size_t(blocks.length * blocks.steps[i]) + 63) & ~size_t(63);
                }
            }
            if (int code = kernel(at.data(), at.data() + blocks.inputs, arena)) {
                result.store(code);
                return;
            }
            if (whole)
                for (size_t i = blocks.inputs; i < count; ++i)
                    memcpy(static_cast<char*>(pointers[i]) + start * blocks.steps[i], at[i],
                           size_t(length * blocks.steps[i]));
        }
    };
    parallel((blocks.total + blocks.length - 1) / blocks.length, blocks.grain, run);
    return result.load();
}

}  // namespace pb
