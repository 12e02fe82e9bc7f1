#include "programs/host_call.h"  // includes Python.h, which comes first
#include "threads/thread_pool.h"
#include "threads/float_mode.h"
#include "threads/start.h"

#include <pthread.h>
#include <sched.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace pb {

thread_local void* current_frame = nullptr;

namespace {

constexpr int kMaxThreads = 1024;
constexpr auto kSpin = std::chrono::microseconds(30);
constexpr auto kLate = std::chrono::microseconds(100);  // after which a worker that has not come is sent elsewhere
constexpr int kSent = 16;                               // of them at most: with more, one does not matter

thread_local bool inside_loop = false;

int available_cores() {
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return std::clamp(CPU_COUNT(&set), 1, kMaxThreads);
#endif
    return std::clamp(int(std::thread::hardware_concurrency()), 1, kMaxThreads);
}

std::atomic<int> wanted_threads{0};  // 0: not set, use available_cores()

// A loop is published by opening the door. A worker may touch the loop's fields only between having counted itself in
// (possible only while the door is open) and having counted itself out; the caller closes the door when no part is left
// to start, and returns when the count is zero. So a worker that wakes up late finds the door closed, or enters the
// next loop properly.
//   door = generation << 32 | open << 31 | limit of workers << 16 | workers inside
constexpr uint64_t kGeneration = uint64_t(1) << 32, kOpen = uint64_t(1) << 31;
constexpr uint64_t kCount = 0xffff, kLimit = 0x7fff;
constexpr int kLimitShift = 16;

// A worker that wakes up while another program has its core is put on that of the loop's caller, and waits there until
// the caller's time is up: Linux left it so for tens of milliseconds while the other core was idle, and every loop took
// twice its time. So the caller forbids a worker that is late its own core, and the worker takes that back.
class PoolThread {
  public:
    std::atomic<bool> inside{false};

#ifdef __linux__
    void begin() { thread_.store(int(syscall(SYS_gettid)), std::memory_order_release); }

    // Called by the caller of a loop. A worker that may run nowhere else stays as it is.
    void send_elsewhere() {
        int thread = thread_.load(std::memory_order_acquire), here = sched_getcpu();
        if (thread == 0 || here < 0 || sent_.load(std::memory_order_acquire)) return;
        if (sched_getaffinity(thread, sizeof before_, &before_) != 0) return;
        cpu_set_t others = before_;
        if (!CPU_ISSET(here, &others) || CPU_COUNT(&others) < 2) return;
        CPU_CLR(here, &others);
        // In this order: a worker that wakes up in between takes its core back the next time.
        if (sched_setaffinity(thread, sizeof others, &others) == 0) sent_.store(true, std::memory_order_release);
    }

    void come_back() {
        if (!sent_.load(std::memory_order_acquire)) return;
        sched_setaffinity(0, sizeof before_, &before_);
        sent_.store(false, std::memory_order_release);
    }

  private:
    std::atomic<int> thread_{0};
    std::atomic<bool> sent_{false};
    cpu_set_t before_;  // written while sent_ is false, by callers alone
#else
    void begin() {}
    void send_elsewhere() {}
    void come_back() {}
#endif
};

// What one thread of a loop does first: the same part of loops in succession, whose data its caches then have. Who is
// through with his own goes on with what is left of the others'.
struct alignas(64) Range {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
};

struct Pool {
    std::mutex busy;             // held by the caller of the loop in progress
    int started = 0;             // workers; guarded by busy
    std::deque<PoolThread> workers;  // the first of them; guarded by busy

    alignas(64) std::atomic<uint64_t> door{0};
    // The loop in progress.
    alignas(64) LoopBody body = nullptr;
    void* ctx = nullptr;
    void* frame = nullptr;
    int64_t chunk = 0;
    int shared = 0;            // ranges of it
    std::deque<Range> ranges;  // the first of them
    // What sleeping workers wait on: changes with every loop.
    alignas(64) std::atomic<uint32_t> bell{0};
    std::atomic<int> sleeping{0};

    // The part in a loop of its thread with a number, 0 for the caller; after each piece it does what `after` says.
    template <class After>
    void work(int number, After after) {
        int first = number == 0 ? 0 : 1 + (number - 1) % (shared - 1);  // the caller's is his own
        for (int k = 0; k < shared; ++k) {
            Range& range = ranges[(first + k) % shared];
            while (range.next.load(std::memory_order_relaxed) < range.end) {
                int64_t begin = range.next.fetch_add(chunk, std::memory_order_relaxed);
                if (begin >= range.end) break;
                body(ctx, begin, std::min(range.end, begin + chunk));
                after();
            }
        }
    }

    bool enter() {
        uint64_t now = door.load(std::memory_order_relaxed);
        while ((now & kOpen) && (now & kCount) < ((now >> kLimitShift) & kLimit))
            if (door.compare_exchange_weak(now, now + 1, std::memory_order_acquire, std::memory_order_relaxed))
                return true;
        return false;
    }

    // The caller's share of a loop; what has not come to help by and by is sent to another core.
    void lead(int helpers) {
        bool waits = true;
        auto late = std::chrono::steady_clock::now() + kLate;
        work(0, [&] {
            if (!waits || std::chrono::steady_clock::now() < late) return;
            waits = false;
            if (int(door.load(std::memory_order_relaxed) & kCount) >= helpers) return;
            for (PoolThread& each : workers)
                if (!each.inside.load(std::memory_order_relaxed)) each.send_elsewhere();
        });
    }

    void worker(int number, PoolThread* own) {
        inside_loop = true;
        FlushDenormals flush;
        if (own) own->begin();
        uint32_t heard = bell.load(std::memory_order_acquire);
        while (true) {
            if (own) own->come_back();
            if (enter()) {
                if (own) own->inside.store(true, std::memory_order_relaxed);
                current_frame = frame;
                work(number, [] {});
                current_frame = nullptr;
                if (own) own->inside.store(false, std::memory_order_relaxed);
                door.fetch_sub(1, std::memory_order_release);
            }
            auto until = std::chrono::steady_clock::now() + kSpin;
            uint32_t now;
            for (int spins = 1; (now = bell.load(std::memory_order_acquire)) == heard; ++spins) {
                spin_pause();
                if (spins % 64 || std::chrono::steady_clock::now() < until) continue;
                sleeping.fetch_add(1);
                bell.wait(heard);  // returns at once if it has rung since
                sleeping.fetch_sub(1);
            }
            heard = now;
        }
    }

    // Has at least `count` workers started, if the system allows. Holder of `busy` only.
    void start_workers(int count) {
        if (started >= count) return;
        for (; started < count; ++started) {
            if (started < kSent && int(workers.size()) == started) workers.emplace_back();
            PoolThread* own = started < kSent ? &workers[started] : nullptr;
            if (!start_thread("pullback-pool", [this, number = started + 1, own] { worker(number, own); }))
                return;  // the loop runs on the threads there are
        }
    }

    void run(LoopBody loop_body, void* loop_ctx, int64_t size, int64_t part, int helpers) {
        body = loop_body;
        ctx = loop_ctx;
        frame = current_frame;
        chunk = part;
        shared = helpers + 1;
        while (int(ranges.size()) < shared) ranges.emplace_back();
        int64_t parts = (size - 1) / part + 1;
        for (int k = 0; k < shared; ++k) {
            ranges[k].next.store(parts * k / shared * part, std::memory_order_relaxed);
            ranges[k].end = std::min(size, parts * (k + 1) / shared * part);
        }
        uint64_t generation = (door.load(std::memory_order_relaxed) & ~(kGeneration - 1)) + kGeneration;
        door.store(generation | kOpen | uint64_t(helpers) << kLimitShift, std::memory_order_release);
        bell.fetch_add(1);
        if (int asleep = sleeping.load()) {
            if (asleep <= helpers) bell.notify_all();
            else
                for (int i = 0; i < helpers; ++i) bell.notify_one();
        }
        lead(helpers);
        door.fetch_and(~kOpen, std::memory_order_relaxed);
        for (int spins = 0; door.load(std::memory_order_acquire) & kCount; ++spins) {
            if (spins < 4096) {
                spin_pause();
                continue;
            }
            pb_interrupt_pending();  // only this thread can hear it, and tell the others
            std::this_thread::yield();
        }
    }
};

std::atomic<Pool*> pool{nullptr};

// The child of a fork has none of the workers, and the state of theirs could be anything. It starts afresh.
[[maybe_unused]] const int pool_at_fork = pthread_atfork(nullptr, nullptr, [] {
    pool.store(nullptr, std::memory_order_release);
    inside_loop = false;
});

Pool& get_pool() {
    Pool* p = pool.load(std::memory_order_acquire);
    if (p) return *p;
    auto* fresh = new Pool;
    if (pool.compare_exchange_strong(p, fresh, std::memory_order_acq_rel)) return *fresh;
    delete fresh;
    return *p;
}

thread_local int sharers = 1;
thread_local Pool* own_pool = nullptr;

}  // namespace

int share_threads(int n) noexcept { return std::exchange(sharers, n); }

void use_own_workers() noexcept { own_pool = new Pool; }

int num_threads() noexcept {
    int n = wanted_threads.load(std::memory_order_relaxed);
    if (n == 0) {
        n = available_cores();
        int expected = 0;
        if (!wanted_threads.compare_exchange_strong(expected, n)) n = expected;
    }
    return n;
}

void set_num_threads(int n) noexcept { wanted_threads.store(std::clamp(n, 1, kMaxThreads), std::memory_order_relaxed); }

void parallel_for(LoopBody body, void* ctx, int64_t n, int64_t grain) noexcept {
    if (n <= 0) return;
    if (grain < 1) grain = 1;
    int threads;
    if (n <= grain || inside_loop || (threads = num_threads() / sharers) <= 1) return body(ctx, 0, n);
    Pool& p = own_pool ? *own_pool : get_pool();
    if (!p.busy.try_lock()) return body(ctx, 0, n);
    // Four parts per thread even out differences between them; more would cost more than they gain.
    int64_t grains = (n - 1) / grain + 1;
    int64_t grains_per_part = std::max<int64_t>(1, grains / (4 * int64_t(threads)));
    int64_t parts = (grains - 1) / grains_per_part + 1;
    int helpers = int(std::min<int64_t>(threads, parts)) - 1;
    p.start_workers(helpers);
    inside_loop = true;
    p.run(body, ctx, n, grains_per_part * grain, helpers);
    inside_loop = false;
    p.busy.unlock();
}

}  // namespace pb

extern "C" int pullback_num_threads() { return pb::num_threads(); }
extern "C" void pullback_set_num_threads(int n) { pb::set_num_threads(n); }
