// What an operation does, in steps between which it waits for messages.
#pragma once
#include <coroutine>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/collectives.h"
#include "collectives/processes.h"

namespace pb {

// What the operation of one group needs of everything.
struct Work {
    const Communication& all;
    const Collective& op;
    int64_t site;
    const std::vector<const void*>& in;
    const std::vector<void*>& out;
    size_t group = 0;
    std::vector<uint32_t> met = {};  // how often others had been met when it began; empty: as often as now

    // Counts the operation as a meeting with each process of the group. A permutation counts the pairs that have a message.
    void meet() const {
        if (op.kind == Kind::permute || members().here.empty()) return;
        for (int process : members().processes) Processes::all().meet(process);
    }
    int me() const { return Processes::all().rank; }
    size_t bytes() const { return op.count * op.element; }
    const Members& members() const { return op.members[group]; }
    const std::vector<int>& devices() const { return op.groups[group]; }
    int owner(int device) const { return all.layout.process[size_t(device)]; }
    bool is_here(int device) const { return owner(device) == me(); }
    const char* operand(int device, size_t offset = 0) const {
        return static_cast<const char*>(in[size_t(all.layout.place_of(device))]) + offset;
    }
    char* result(int device, size_t offset = 0) const {
        return static_cast<char*>(out[size_t(all.layout.place_of(device))]) + offset;
    }
    Message send(int process, const void* data, size_t size, int step) const {
        return {true, process, tag(process, step), const_cast<void*>(data), size};
    }
    Message receive(int process, void* data, size_t size, int step) const {
        return {false, process, tag(process, step), data, size};
    }

  private:
    uint32_t tag(int process, int step) const {
        const Processes& processes = Processes::all();
        const uint32_t meeting = (met.empty() ? processes.met() : met)[size_t(process)];
        return tag_of(step_of(all.fingerprint, site, group, step, processes.tag_limit), meeting, processes.tag_limit);
    }
};

// It runs to where it has to wait for messages (`co_await wait_for(messages)`), and on from there when they are done: so
// one text serves operations that are waited for at once and those that work goes on beside. One that is given up is
// destroyed where it waits.
class Steps {
  public:
    struct promise_type {
        Processes::Pending* pending = nullptr;
        Steps get_return_object() { return Steps(std::coroutine_handle<promise_type>::from_promise(*this)); }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        [[noreturn]] void unhandled_exception() { std::terminate(); }
    };
    explicit Steps(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
    Steps(Steps&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    ~Steps() {
        if (handle_) handle_.destroy();
    }
    // Waits, and goes on, until all is done. False if it cannot be: reason() says why.
    bool finish(const std::function<bool()>& interrupted, const std::string& what) {
        while (!handle_.done()) {
            if (!Processes::all().finish(std::exchange(handle_.promise().pending, nullptr), interrupted, what)) return false;
            handle_.resume();
        }
        return true;
    }
    // Goes on as far as it can without waiting.
    void advance() {
        while (!handle_.done() && Processes::all().is_done(handle_.promise().pending)) {
            Processes::all().recycle(std::exchange(handle_.promise().pending, nullptr));
            handle_.resume();
        }
    }

  private:
    std::coroutine_handle<promise_type> handle_;
};

struct wait_for {
    std::vector<Message> messages;
    explicit wait_for(std::vector<Message> given) : messages(std::move(given)) {}
    bool await_ready() const { return messages.empty(); }
    void await_suspend(std::coroutine_handle<Steps::promise_type> handle) {
        handle.promise().pending = Processes::all().begin(messages);
    }
    void await_resume() const {}
};

// Begins the operation of one group; a permutation has one for all. `work` must stay where it is until it is done.
Steps steps_of(const Work& work);

}  // namespace pb
