#pragma once

#include <pthread.h>
#include <signal.h>

#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace pb {

// Starts a thread of our own that runs `body` to its end, or says that the system allows no more. Signals are for the
// threads of Python. Its name, of at most 15 characters, is what tools that list threads show (top -H, gdb, perf).
template <class Body>
std::optional<pthread_t> start_thread(const char* name, Body body) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);  // a thread starts with its maker's
    std::optional<pthread_t> started;
    try {
#ifdef __linux__
        std::thread thread(std::move(body));
        pthread_setname_np(thread.native_handle(), name);  // here: it may be long before the thread itself runs
#else
        std::thread thread([name, body = std::move(body)]() mutable {
            pthread_setname_np(name);
            body();
        });
#endif
        started = thread.native_handle();
        thread.detach();
    } catch (const std::system_error&) {
    }
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
    return started;
}

}  // namespace pb
