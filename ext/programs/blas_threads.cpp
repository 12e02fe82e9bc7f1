#include "programs/blas_threads.h"

#include <mutex>

namespace {

std::mutex guard;
int (*get_threads)() = nullptr;
void (*set_threads)(int) = nullptr;
int users = 0;
int before = 0;

}  // namespace

namespace pb {

void set_blas_control(int (*get)(), void (*set)(int)) {
    std::lock_guard<std::mutex> lock(guard);
    if (!users) get_threads = get, set_threads = set;
}

}  // namespace pb

extern "C" void pb_blas_begin() {
    std::lock_guard<std::mutex> lock(guard);
    if (users++ || !get_threads) return;
    before = get_threads();
    if (before != 1) set_threads(1);
}

extern "C" void pb_blas_end() {
    std::lock_guard<std::mutex> lock(guard);
    if (--users || !get_threads) return;
    if (before != 1) set_threads(before);
}
