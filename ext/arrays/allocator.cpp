#include "arrays/allocator.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

namespace pb {
namespace {

constexpr size_t kHugePage = size_t(2) << 20;
constexpr int kClasses = 256;
alignas(64) char empty_block[64];

// The size class of a request: multiples of 64 up to 256, then four classes per power of two.
inline int size_class(size_t bytes) {
    size_t units = (bytes + 63) / 64;
    if (units <= 4) return int(units) - 1;
    int log = std::bit_width(units - 1) - 1;  // 2^log <= units - 1 < 2^(log+1)
    return 4 * (log - 1) + int((units - 1) >> (log - 2)) - 4;
}

inline size_t class_bytes(int c) {
    if (c < 4) return size_t(c + 1) * 64;
    int log = c / 4 + 1;
    return (size_t(c % 4 + 5) << (log - 2)) * 64;
}

// Held for some ten instructions at a time, so waiting threads spin. It is a lock of its own rather than a mutex so
// that it can be taken around fork() (see below).
class SpinLock {
  public:
    void lock() {
        int spins = 0;
        while (flag_.test_and_set(std::memory_order_acquire))
            if (++spins > 64) std::this_thread::yield();
    }
    void unlock() { flag_.clear(std::memory_order_release); }

  private:
    std::atomic_flag flag_ = ATOMIC_FLAG_INIT;
};

struct Guard {
    SpinLock& lock;
    explicit Guard(SpinLock& l) : lock(l) { lock.lock(); }
    ~Guard() { lock.unlock(); }
};

size_t physical_memory() {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? size_t(pages) * size_t(page) : size_t(4) << 30;
}

struct State {
    SpinLock lock;
    std::vector<void*> freed[kClasses];
    MemoryStats stats{0, 0, 0, physical_memory() / 8, 0, 0};

    State() {
        // fork() while another thread holds the lock would leave it held in the child for ever.
        pthread_atfork([] { get().lock.lock(); }, [] { get().lock.unlock(); }, [] { get().lock.unlock(); });
    }
    // Never destroyed: arrays may be freed while the interpreter shuts down.
    static State& get() {
        static State* state = new State;
        return *state;
    }
    void* evict_largest_above(size_t keep) {
        if (stats.bytes_cached <= keep) return nullptr;
        for (int c = kClasses - 1; c >= 0; --c) {
            if (freed[c].empty()) continue;
            void* block = freed[c].back();
            freed[c].pop_back();
            stats.bytes_cached -= class_bytes(c);
            return block;
        }
        return nullptr;
    }
};

[[maybe_unused]] State& at_load = State::get();  // before there are threads that could fork meanwhile

void* system_allocate(size_t bytes) {
    void* block = nullptr;
    if (posix_memalign(&block, bytes >= kHugePage ? kHugePage : kAlignment, bytes)) return nullptr;
#ifdef MADV_HUGEPAGE
    if (bytes >= kHugePage) madvise(block, bytes & ~(kHugePage - 1), MADV_HUGEPAGE);
#endif
    return block;
}

}  // namespace

void* allocate(size_t bytes) noexcept {
    if (bytes == 0) return empty_block;
    if (bytes > (size_t(1) << 60)) return nullptr;
    State& state = State::get();
    int c = size_class(bytes);
    size_t rounded = class_bytes(c);
    {
        Guard guard(state.lock);
        MemoryStats& stats = state.stats;
        ++stats.num_allocs;
        stats.bytes_in_use += rounded;
        stats.peak_bytes_in_use = std::max(stats.peak_bytes_in_use, stats.bytes_in_use);
        if (!state.freed[c].empty()) {
            void* block = state.freed[c].back();
            state.freed[c].pop_back();
            stats.bytes_cached -= rounded;
            ++stats.num_reused;
            return block;
        }
    }
    void* block = system_allocate(rounded);
    if (!block) {  // what is cached may be what is missing
        trim_memory(0);
        block = system_allocate(rounded);
    }
    if (!block) {
        Guard guard(state.lock);
        state.stats.bytes_in_use -= rounded;
    }
    return block;
}

void deallocate(void* block, size_t bytes) noexcept {
    if (!block || bytes == 0) return;
    State& state = State::get();
    int c = size_class(bytes);
    size_t rounded = class_bytes(c);
    void* surplus = nullptr;
    {
        Guard guard(state.lock);
        state.stats.bytes_in_use -= rounded;
        if (rounded > state.stats.cache_limit) {
            surplus = block;
        } else {
            try {
                state.freed[c].push_back(block);
                state.stats.bytes_cached += rounded;
            } catch (const std::bad_alloc&) {
                surplus = block;
            }
        }
        if (!surplus) surplus = state.evict_largest_above(state.stats.cache_limit);
    }
    while (surplus) {
        free(surplus);
        Guard guard(state.lock);
        surplus = state.evict_largest_above(state.stats.cache_limit);
    }
}

MemoryStats memory_stats() noexcept {
    State& state = State::get();
    Guard guard(state.lock);
    return state.stats;
}

void trim_memory(size_t keep) noexcept {
    State& state = State::get();
    while (true) {
        void* block;
        {
            Guard guard(state.lock);
            block = state.evict_largest_above(keep);
        }
        if (!block) break;
        free(block);
    }
#ifdef __GLIBC__
    malloc_trim(0);  // free() gives back what lies at the end of the heap alone, not what lies among what is in use
#endif
}

void set_cache_limit(size_t bytes) noexcept {
    {
        State& state = State::get();
        Guard guard(state.lock);
        state.stats.cache_limit = bytes;
    }
    trim_memory(bytes);
}

}  // namespace pb
