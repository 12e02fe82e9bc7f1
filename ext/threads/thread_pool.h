// The threads that run parallel loops of generated code.
//
// Workers are started when the first loop needs them, and spin for some 30 us after a loop before they sleep, so that
// loops in quick succession start at once. The pool is never torn down: at interpreter exit the workers sleep, and a
// forked child, which inherits none of them, starts its own when it needs them.
#pragma once
#include <cstdint>

namespace pb {

using LoopBody = void (*)(void* ctx, int64_t begin, int64_t end);

// Calls body(ctx, begin, end) for contiguous parts that cover [0, n) exactly once; inner boundaries are multiples of
// `grain` (at least 1). Returns when all parts are done; the caller works, too.
//  * n <= 0: body is not called. n <= grain, one thread, or a loop inside a loop: one call body(ctx, 0, n) by the
//  caller.
//  * If another thread's loop holds the workers, the caller does all of its own loop.
//  * The body must not throw. Needs no GIL; the body must not wait for a lock that the caller holds (such as the GIL).
void parallel_for(LoopBody body, void* ctx, int64_t n, int64_t grain) noexcept;

// The number of threads of a loop, the caller included. Starts as the number of cores this process may run on.
int num_threads() noexcept;
// n >= 1. Counts for loops that start later; workers that are then too many sleep.
void set_num_threads(int n) noexcept;

// The calling thread's loops use an n-th of the threads, at least one, as n devices run at once. Returns what it was.
int share_threads(int n) noexcept;
// The calling thread's loops get workers of their own, which no other thread's loops ever hold.
void use_own_workers() noexcept;

// A hint to the core, for threads that spin.
inline void spin_pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// A value that belongs to the thread that called parallel_for and is seen as its own by each thread of its loop: the
// running program.
extern thread_local void* current_frame;

}  // namespace pb

// What threadpoolctl finds in the library.
extern "C" __attribute__((visibility("default"))) int pullback_num_threads();
extern "C" __attribute__((visibility("default"))) void pullback_set_num_threads(int n);

// The address by which generated code calls parallel_for. In a program that can be interrupted it looks whether it should
// stop, some thousand times a second; then it leaves out the rest of the loop, and the program must end at once.
extern "C" void pb_parallel_for(void (*body)(void*, int64_t, int64_t), void* ctx, int64_t n, int64_t grain);
