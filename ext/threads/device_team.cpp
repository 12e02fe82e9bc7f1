#include "threads/device_team.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "collectives/collectives.h"
#include "collectives/under_way.h"
#include "programs/host_call.h"
#include "threads/float_mode.h"
#include "threads/start.h"
#include "threads/thread_pool.h"

namespace pb {


namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kAsk = std::chrono::milliseconds(20);  // between two questions whether Ctrl-C was pressed

// How long to spin, in microseconds. Where cores are to be had it saves the 5 to 10 us of waking up; where others wait
// for the cores it costs: the one that is waited for runs later, and the scheduler counts the spinning (an exchange on a
// machine under load: 46 us without, 280 with 50 us). So spinning in vain halves it, and now and then the longest is tried:
// a shorter one is over before a thread that sleeps has woken up, so that none would ever be worth while again.
// Who spins longer than an exchange takes gives way to others: threads that woke each other share a core, where one that
// spins keeps the other from coming, and only threads that wait for a core, not sleepers, are moved to an idle one.
constexpr int kLongest = 50, kAgain = 64, kAlone = 64;
std::atomic<int> spin_time{kLongest};
std::atomic<unsigned> waits{0};

// Whether `done()` came true within the time that is worth spinning for.
template <typename Done>
bool spin_until(Done done, bool may_spin) {
    if (done()) return true;
    if (!may_spin) return false;
    int time = spin_time.load(std::memory_order_relaxed);
    if (time == 0 && waits.fetch_add(1, std::memory_order_relaxed) % kAgain == 0) time = kLongest;
    if (time == 0) return false;
    auto until = Clock::now() + std::chrono::microseconds(time);
    for (int i = 1;; ++i) {
        spin_pause();
        if (done()) {
            spin_time.store(std::min(kLongest, 2 * time), std::memory_order_relaxed);
            return true;
        }
        if (i % 16) continue;
        if (Clock::now() >= until) {
            spin_time.store(time / 2, std::memory_order_relaxed);
            return false;
        }
        if (i >= kAlone) std::this_thread::yield();
    }
}

// A thread that waits for a device's work. Threads are kept for the next team; they sleep meanwhile.
struct Worker {
    std::atomic<uint32_t> bell{0};
    std::function<void()> work;  // set before the bell rings
    std::atomic<bool> spins{false};
    pthread_t thread{};

    void loop() {
        use_own_workers();
        FlushDenormals flush;
        uint32_t heard = 0;
        while (true) {
            if (!spin_until([&] { return bell.load(std::memory_order_acquire) != heard; }, spins.load()))
                bell.wait(heard, std::memory_order_acquire);
            heard = bell.load(std::memory_order_acquire);
            auto job = std::move(work);  // at its end the worker is given back, and may be given other work
            job();
        }
    }
    void ring() {
        bell.fetch_add(1, std::memory_order_release);
        bell.notify_one();
    }
};

std::mutex idle_mutex;
auto* idle_workers = new std::vector<Worker*>;  // never destroyed

// The child of a fork has none of the threads. (Nor can it have a team that runs, as the forking thread would be in it.)
// The list may be in the middle of a change, so it is not looked at.
[[maybe_unused]] const int devices_at_fork = pthread_atfork(nullptr, nullptr, [] {
    new (&idle_mutex) std::mutex;
    idle_workers = new std::vector<Worker*>;
});

Worker* get_worker() {
    {
        std::lock_guard lock(idle_mutex);
        auto& idle = *idle_workers;
        if (!idle.empty()) {
            Worker* worker = idle.back();
            idle.pop_back();
            return worker;
        }
    }
    auto* worker = new Worker;
    auto started = start_thread("pullback-device", [worker] { worker->loop(); });
    if (!started) {
        delete worker;
        return nullptr;
    }
    worker->thread = *started;
    return worker;
}

void give_back(Worker* worker) {
    std::lock_guard lock(idle_mutex);
    idle_workers->push_back(worker);
}

// The cores that this thread may use, and a worker's start on another one than this: woken threads may be put on the core of
// whoever woke them though others are idle, and there they stay as long as they wake each other.
#ifdef __linux__
struct Cores {
    cpu_set_t all;
    bool known = sched_getaffinity(0, sizeof all, &all) == 0;

    void keep_off_this(Worker* worker) const {
        if (!known) return;
        cpu_set_t others = all;
        CPU_CLR(size_t(sched_getcpu()), &others);
        if (CPU_COUNT(&others)) pthread_setaffinity_np(worker->thread, sizeof others, &others);
    }
    void use_all() const {
        if (known) pthread_setaffinity_np(pthread_self(), sizeof all, &all);
    }
};
#else
struct Cores {
    void keep_off_this(Worker*) const {}
    void use_all() const {}
};
#endif

std::string numbers(const std::vector<int>& devices) {
    std::string text;
    for (int d : devices) text += (text.empty() ? "" : ", ") + std::to_string(d);
    return text;
}

}  // namespace

Team::Team(int size, const Communication* communication)
    : size_(size),
      spins_(size <= num_threads()),
      devices_(size_t(size)),
      communication_(communication),
      in_(size_t(size)),
      out_(size_t(size)),
      under_way_(communication ? std::make_unique<UnderWay>(*communication) : nullptr) {}

Team::Shown& Team::current(int device) {
    Device& d = devices_[size_t(device)];
    return d.shown[d.turn % 2];
}

Team::~Team() {
    if (is_abandoned()) abandoned_runs.fetch_sub(1);
}

void Team::abandon(const std::string& reason) {
    std::lock_guard lock(mutex_);
    if (!abandoned_.load()) {
        reason_ = reason;
        abandoned_runs.fetch_add(1);
        abandoned_.store(true);
    }
    changed_.notify_all();
}

void Team::finish(bool well) {
    if (!well) abandon("");
    finished_.fetch_add(1);
    std::lock_guard lock(mutex_);
    changed_.notify_all();
}

bool Team::run(const std::function<bool(int)>& work, const std::function<bool()>& interrupted) {
    std::vector<Worker*> workers;
    for (int device = 1; device < size_; ++device) {
        Worker* worker = get_worker();
        if (!worker) {
            for (Worker* w : workers) give_back(w);
            return false;
        }
        workers.push_back(worker);
    }
    interrupted_ = &interrupted;
    std::atomic<int> left{size_ - 1};
    Cores cores;
    for (int device = 1; device < size_; ++device) {
        Worker* worker = workers[size_t(device) - 1];
        worker->spins.store(spins_);
        if (spins_) cores.keep_off_this(worker);
        worker->work = [this, &work, &left, device, worker, cores] {
            if (spins_) cores.use_all();
            share_threads(size_);
            bool well = work(device);
            share_threads(1);
            finish(well);
            give_back(worker);
            std::lock_guard lock(mutex_);  // the caller, which may destroy the team, waits for it
            if (left.fetch_sub(1) == 1) changed_.notify_all();
        };
        worker->ring();
    }
    int outer = share_threads(size_);
    bool well = work(0);
    share_threads(outer);
    finish(well);
    spin_until([&] { return left.load() == 0; }, spins_);
    std::unique_lock lock(mutex_);
    while (left.load()) {
        changed_.wait_for(lock, kAsk, [&] { return left.load() == 0; });
        if (!left.load()) break;
        lock.unlock();
        if (!is_abandoned() && interrupted()) abandon("");
        lock.lock();
    }
    return true;
}

void Team::show(int device, int64_t slot, const void* data) {
    auto& slots = current(device).data;
    if (slots.size() <= size_t(slot)) slots.resize(size_t(slot) + 1);
    slots[size_t(slot)] = data;
}

void Team::show_copy(int device, int64_t slot, const void* data, size_t bytes) {
    auto& copies = current(device).copies;
    if (copies.size() <= size_t(slot)) copies.resize(size_t(slot) + 1);
    auto* from = static_cast<const char*>(data);
    copies[size_t(slot)].assign(from, from + bytes);
    show(device, slot, copies[size_t(slot)].data());
}

void Team::take(int device, int64_t slot, void* out, size_t bytes) const {
    if (is_abandoned()) return;
    uint32_t turn = devices_[size_t(device)].turn - 1;
    for (int d = 0; d < size_ && bytes; ++d)
        memcpy(static_cast<char*>(out) + size_t(d) * bytes, devices_[size_t(d)].shown[turn % 2].data[size_t(slot)], bytes);
}

void Team::meet_to_read(int device, int64_t site) {
    meet(device, site);
    ++devices_[size_t(device)].turn;
}

bool Team::meet(int device, int64_t site) {
    if (is_abandoned()) return false;
    uint32_t generation = generation_.load();
    devices_[size_t(device)].site = site;
    if (arrived_.fetch_add(1) + 1 < size_) return wait(device, generation);
    std::vector<int> here, elsewhere;
    for (int d = 0; d < size_; ++d) (devices_[size_t(d)].site == devices_[0].site ? here : elsewhere).push_back(d);
    if (!elsewhere.empty()) {
        abandon("the devices have come to different collective operations: devices " + numbers(here) + " to one, " +
                numbers(elsewhere) + " to another");
        return false;
    }
    arrived_.store(0);
    generation_.store(generation + 1);
    if (sleeping_.load()) {
        std::lock_guard lock(mutex_);
        changed_.notify_all();
    }
    return true;
}

void Team::collective(int device, int64_t site, const void* in, void* out) {
    in_[size_t(device)] = in;
    out_[size_t(device)] = out;
    if (size_ > 1 && !meet(device, 2 * site)) return;
    if (size_ == 1 && is_abandoned()) return;
    if (!device && !perform(*communication_, site, in_, out_, *interrupted_)) abandon(Processes::all().reason());
    if (size_ > 1) meet(device, 2 * site + 1);  // until here the operands are read and the results written
}

void Team::begin_collective(int device, int64_t site, const void* in, void* out) {
    if (!is_abandoned() && !under_way_->begin(size_t(device), site, in, out)) abandon(Processes::all().reason());
}

void Team::end_collective(int device, int64_t site) {
    if (size_ > 1 && !meet(device, 2 * site)) return;
    if (size_ == 1 && is_abandoned()) return;
    if (!device && !under_way_->end(site, *interrupted_)) abandon(Processes::all().reason());
    if (size_ > 1) meet(device, 2 * site + 1);  // until here the results are written
}

int Team::number(int device) const { return communication_ ? communication_->layout.local[size_t(device)] : device; }

bool Team::wait(int device, uint32_t generation) {
    auto complete = [&] { return generation_.load() != generation; };
    if (spin_until(complete, spins_)) return true;
    std::unique_lock lock(mutex_);
    sleeping_.fetch_add(1);
    bool met = false;
    while (!is_abandoned()) {
        // Who has ended passed all of its exchanges before, so they are complete; it will not come to another.
        int ended = finished_.load();
        if ((met = complete())) break;
        if (ended) {
            lock.unlock();
            abandon("a device waits for others in a collective operation, but " + std::to_string(ended) + " of " +
                    std::to_string(size_) + " have ended");
            lock.lock();
            break;
        }
        if (device) {
            changed_.wait(lock);
            continue;
        }
        changed_.wait_for(lock, kAsk);
        lock.unlock();
        if (!complete() && (*interrupted_)()) abandon("");
        lock.lock();
    }
    sleeping_.fetch_sub(1);
    return met || complete();
}

}  // namespace pb

extern "C" {

void pb_show(int64_t slot, const void* data) {
    auto* frame = static_cast<pb::Frame*>(pb::current_frame);
    frame->team->show(frame->device, slot, data);
}

void pb_show_copy(int64_t slot, const void* data, int64_t bytes) {
    auto* frame = static_cast<pb::Frame*>(pb::current_frame);
    frame->team->show_copy(frame->device, slot, data, size_t(bytes));
}

void pb_meet(int64_t site) {
    auto* frame = static_cast<pb::Frame*>(pb::current_frame);
    frame->team->meet_to_read(frame->device, 2 * site);
}

void pb_take(int64_t slot, void* out, int64_t bytes) {
    auto* frame = static_cast<pb::Frame*>(pb::current_frame);
    frame->team->take(frame->device, slot, out, size_t(bytes));
}

void pb_part(int64_t site) {
    auto* frame = static_cast<pb::Frame*>(pb::current_frame);
    frame->team->meet(frame->device, 2 * site + 1);
}

void pb_withdraw(int64_t, const void*) {}

void pb_device_index(int32_t* out) {
    auto* frame = static_cast<pb::Frame*>(pb::current_frame);
    *out = frame->team->number(frame->device);
}

}  // extern "C"
