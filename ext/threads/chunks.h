// Loops of the thread pool over lambdas.
#pragma once
#include <algorithm>
#include <cstdint>

#include "threads/thread_pool.h"

namespace pb {

// function(begin, end) for parts of [0, n) of `grain` iterations or more, on the threads of the pool.
template <class Function>
void parallel(int64_t n, int64_t grain, const Function& function) {
    parallel_for(
        [](void* ctx, int64_t begin, int64_t end) { (*static_cast<const Function*>(ctx))(begin, end); },
        const_cast<Function*>(&function), n, grain);
}

// [0, n) in `count` parts of nearly one size.
struct Chunks {
    int64_t n, count;

    // As many as keep the threads busy, if each is worth waking a thread for.
    static Chunks of(int64_t n, int64_t least) {
        int threads = num_threads();
        return {n, threads == 1 ? 1 : std::clamp<int64_t>(n / least, 1, threads)};
    }
    int64_t begin(int64_t chunk) const { return n / count * chunk + std::min(chunk, n % count); }

    // function(chunk, begin, end) for each.
    template <class Function>
    void run(const Function& function) const {
        parallel(count, 1, [&](int64_t first, int64_t last) {
            for (int64_t chunk = first; chunk < last; ++chunk) function(chunk, begin(chunk), begin(chunk + 1));
        });
    }
};

}  // namespace pb
