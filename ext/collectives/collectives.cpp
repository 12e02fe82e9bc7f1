#include "collectives/collectives.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>

#include "collectives/steps.h"

namespace pb {
namespace {

constexpr size_t kWhole = 1 << 15;  // bytes, see the head
constexpr size_t kLittle = 1 << 11;  // bytes of all operands that are added up without more ado

void copy(void* to, const void* from, size_t bytes) {
    if (to != from && bytes) memcpy(to, from, bytes);
}

// Memory of one operation, kept for the next ones: new pages cost as much as moving the bytes (of 4 MB a quarter of the
// time of an all-reduce). Where the processes fail MPI may still write to it, so it is not used again then.
struct Block {
    char* data;
    size_t bytes;
};
constexpr size_t kKept = size_t(1) << 28;  // bytes, at most

// Operations end on other threads than they begin on, and teams of a process that talks to no other run beside each other.
struct Idle {
    std::mutex mutex;
    std::vector<Block> blocks;
    size_t bytes = 0;
};
Idle& idle() {
    static auto* all = new Idle;
    return *all;
}

struct Scratch {
    std::vector<Block> blocks;
    char* get(size_t bytes) {
        bytes = std::max<size_t>(bytes, 1);
        std::lock_guard lock(idle().mutex);
        auto& kept = idle().blocks;
        auto best = kept.end();
        for (auto it = kept.begin(); it != kept.end(); ++it)
            if (it->bytes >= bytes && it->bytes <= 4 * bytes + 4096 && (best == kept.end() || it->bytes < best->bytes)) best = it;
        if (best != kept.end()) {
            blocks.push_back(*best);
            idle().bytes -= best->bytes;
            kept.erase(best);
        } else {
            blocks.push_back({static_cast<char*>(::operator new(bytes, std::align_val_t(64))), bytes});
        }
        return blocks.back().data;
    }
    ~Scratch() {
        if (blocks.empty() || Processes::all().has_failed()) return;
        std::lock_guard lock(idle().mutex);
        for (Block& block : blocks) {
            if (idle().bytes + block.bytes > kKept) {
                ::operator delete(block.data, std::align_val_t(64));
                continue;
            }
            idle().bytes += block.bytes;
            idle().blocks.push_back(block);
        }
    }
};

// The sum of all parts[k] (count elements each), in order, to `out`, which may be the first of them.
void add_up(const Work& w, const std::vector<const char*>& parts, char* out, size_t count) {
    if (parts.size() == 1) return copy(out, parts[0], count * w.op.element);
    // By blocks, so that a partial sum is still in the cache when it is added to.
    const size_t block = std::max<size_t>(1, (1 << 14) / w.op.element);
    for (size_t at = 0; at < count; at += block) {
        size_t n = std::min(block, count - at), offset = at * w.op.element;
        w.op.combine(parts[0] + offset, parts[1] + offset, out + offset, n);
        for (size_t k = 2; k < parts.size(); ++k) w.op.combine(out + offset, parts[k] + offset, out + offset, n);
    }
}

// Of elements, or blocks: [first, last).
struct Range {
    size_t first, last;
    size_t size() const { return last - first; }
    Range part(size_t k, size_t n) const { return {first + size() * k / n, first + size() * (k + 1) / n}; }
};

// One round of a process: who meets whom.
struct Round {
    const Members& m;
    size_t size, stride;  // of places

    size_t place() const { return size_t(m.place); }
    size_t digit() const { return place() / stride % size; }
    size_t peer(size_t k) const { return place() - digit() * stride + k * stride; }  // place of the one with digit k
    int process(size_t k) const { return m.processes[peer(k)]; }
};

// The rounds of a group, from neighbours to the most distant.
std::vector<Round> rounds_of(const Members& m) {
    std::vector<Round> rounds;
    size_t stride = 1;
    for (size_t size : m.rounds.sizes) {
        rounds.push_back({m, size, stride});
        stride *= size;
    }
    return rounds;
}

// The process that stands outside of the rounds and leaves its part to this one, or the one that this one leaves it to.
struct Outside {
    bool is_me, has_one;
    int process = -1;
    explicit Outside(const Members& m)
        : is_me(size_t(m.place) >= m.rounds.inner), has_one(size_t(m.place) + m.rounds.inner < m.processes.size()) {
        if (is_me) process = m.processes[size_t(m.place) - m.rounds.inner];
        if (has_one) process = m.processes[size_t(m.place) + m.rounds.inner];
    }
};

Steps all_reduce(const Work& w) {
    const Members& m = w.members();
    if (m.here.empty()) co_return;
    const size_t count = w.op.count, element = w.op.element, bytes = w.bytes();
    Scratch scratch;
    char* out = w.result(m.here[0]);
    const char* mine = w.operand(m.here[0]);  // the sum of what is here
    if (m.here.size() > 1) {
        std::vector<const char*> operands;
        for (int device : m.here) operands.push_back(w.operand(device));
        char* sum = m.processes.size() == 1 ? out : scratch.get(bytes);
        add_up(w, operands, sum, count);
        mine = sum;
    }
    const std::vector<Round> rounds = rounds_of(m);
    const Outside outside(m);
    const int last = 1 + 2 * int(rounds.size());
    std::vector<Message> messages;
    if (m.processes.size() == 1) {
        copy(out, mine, bytes);
    } else if (outside.is_me) {
        messages.push_back(w.receive(outside.process, out, bytes, last));
        messages.push_back(w.send(outside.process, mine, bytes, 0));
        co_await wait_for(std::move(messages));
    } else {
        if (outside.has_one) {
            char* from = scratch.get(bytes);
            messages.push_back(w.receive(outside.process, from, bytes, 0));
            co_await wait_for(std::move(messages));
            char* sum = scratch.get(bytes);
            std::vector<const char*> parts{mine, from};
            add_up(w, parts, sum, count);
            mine = sum;
        }
        const bool whole = bytes * (1 + m.rounds.partners()) <= kWhole || count < m.rounds.inner;
        std::vector<Range> ranges{{0, count}};  // what there is of the sums before each round, `mine` is where it begins
        for (size_t i = 0; i < rounds.size(); ++i) {
            const Round& round = rounds[i];
            const Range now = ranges.back();
            auto part = [&](size_t k) { return whole ? now : now.part(k, round.size); };
            auto at = [&](size_t k) { return mine + (part(k).first - now.first) * element; };
            const Range own = part(round.digit());
            std::vector<const char*> parts(round.size);
            messages = {};
            for (size_t k = 0; k < round.size; ++k) {
                if (k == round.digit()) {
                    parts[k] = at(k);
                    continue;
                }
                // The only one comes to where the sum will be: one buffer less to go through the cache.
                const bool in_place = round.size == 2 && i + 1 == rounds.size();
                char* from = in_place ? out + own.first * element : scratch.get(own.size() * element);
                parts[k] = from;
                messages.push_back(w.receive(round.process(k), from, own.size() * element, 1 + int(i)));
                messages.push_back(w.send(round.process(k), at(k), part(k).size() * element, 1 + int(i)));
            }
            co_await wait_for(std::move(messages));
            char* sum = i + 1 == rounds.size() ? out + own.first * element : scratch.get(own.size() * element);
            add_up(w, parts, sum, own.size());
            mine = sum;
            ranges.push_back(own);
        }
        for (size_t i = whole ? 0 : rounds.size(); i--;) {
            const Round& round = rounds[i];
            auto part = [&](size_t k) { return ranges[i].part(k, round.size); };
            auto at = [&](size_t k) { return out + part(k).first * element; };
            const size_t digit = round.digit();
            messages = {};
            for (size_t k = 0; k < round.size; ++k) {
                if (k == digit) continue;
                messages.push_back(w.receive(round.process(k), at(k), part(k).size() * element, last - 1 - int(i)));
                messages.push_back(w.send(round.process(k), at(digit), part(digit).size() * element, last - 1 - int(i)));
            }
            co_await wait_for(std::move(messages));
        }
        messages = {};
        if (outside.has_one) messages.push_back(w.send(outside.process, out, bytes, last));
        co_await wait_for(std::move(messages));
    }
    for (int device : m.here) copy(w.result(device), out, bytes);
}

// Whether `add_little` does an operation: processes of one device each, which meet in one round, and few bytes.
bool is_little(const Work& w) {
    const Members& m = w.members();
    const size_t n = m.processes.size();
    return w.op.kind == Kind::all_reduce && m.here.size() == 1 && n > 1 && n < kMany && w.bytes() && w.bytes() * n <= kLittle;
}

// What all_reduce does then, with the same messages, in memory that is there: allocating it takes as long as the message
// of a number (0.52 us before, for 2 processes). The caller has the processes' mutex.
bool add_little(const Work& w, const std::function<bool()>& interrupted) {
    static auto* messages = new std::vector<Message>;
    static auto* room = new (std::align_val_t(64)) char[kLittle];  // MPI may write to it after a failure: nobody uses it then
    const Members& m = w.members();
    const size_t n = m.processes.size(), bytes = w.bytes();
    const char* parts[kMany];
    messages->clear();
    for (size_t k = 0; k < n; ++k) {
        parts[k] = k == size_t(m.place) ? w.operand(m.here[0]) : room + k * bytes;
        if (k == size_t(m.place)) continue;
        messages->push_back(w.receive(m.processes[k], room + k * bytes, bytes, 1));
        messages->push_back(w.send(m.processes[k], w.operand(m.here[0]), bytes, 1));
    }
    if (!Processes::all().exchange(*messages, interrupted, w.op.text)) return false;
    char* out = w.result(m.here[0]);
    w.op.combine(parts[0], parts[1], out, w.op.count);
    for (size_t k = 2; k < n; ++k) w.op.combine(out, parts[k], out, w.op.count);
    return true;
}

// Each process sends each device's part to all others.
Steps all_gather_at_once(const Work& w) {
    const Members& m = w.members();
    if (m.here.empty()) co_return;
    const std::vector<int>& group = w.devices();
    char* out = w.result(m.here[0]);
    std::vector<Message> messages;
    for (size_t k = 0; k < group.size(); ++k) {
        char* to = out + k * w.bytes();
        if (!w.is_here(group[k])) {
            messages.push_back(w.receive(w.owner(group[k]), to, w.bytes(), 0));
            continue;
        }
        for (int p : m.processes)
            if (p != w.me()) messages.push_back(w.send(p, w.operand(group[k]), w.bytes(), 0));
        copy(to, w.operand(group[k]), w.bytes());
    }
    co_await wait_for(std::move(messages));
    for (int device : m.here) copy(w.result(device), out, group.size() * w.bytes());
}

// The blocks of the places that begin at `first`, and those of the ones outside that leave theirs to them.
std::vector<Range> blocks_of(const Members& m, size_t first, size_t places) {
    std::vector<Range> found{{first, first + places}};
    const size_t n = m.processes.size(), inner = m.rounds.inner;
    if (inner + first < n) found.push_back({inner + first, std::min(inner + first + places, n)});
    return found;
}

Steps all_gather_in_rounds(const Work& w) {
    const Members& m = w.members();
    if (m.here.empty()) co_return;
    const size_t bytes = w.bytes(), all = m.processes.size() * bytes;
    char* out = w.result(m.here[0]);
    const Outside outside(m);
    const std::vector<Round> rounds = rounds_of(m);
    const int last = 1 + int(rounds.size());
    copy(out + size_t(m.place) * bytes, w.operand(m.here[0]), bytes);
    std::vector<Message> messages;
    if (outside.is_me) {
        messages.push_back(w.receive(outside.process, out, all, last));
        messages.push_back(w.send(outside.process, w.operand(m.here[0]), bytes, 0));
    } else if (outside.has_one) {
        messages.push_back(w.receive(outside.process, out + (size_t(m.place) + m.rounds.inner) * bytes, bytes, 0));
    }
    co_await wait_for(std::move(messages));
    if (outside.is_me) co_return;
    for (size_t i = 0; i < rounds.size(); ++i) {
        const Round& round = rounds[i];
        messages = {};
        for (size_t k = 0; k < round.size; ++k) {
            if (k == round.digit()) continue;
            auto begin = [&](size_t place) { return place / round.stride * round.stride; };
            for (Range r : blocks_of(m, begin(round.peer(k)), round.stride))
                messages.push_back(w.receive(round.process(k), out + r.first * bytes, r.size() * bytes, 1 + int(i)));
            for (Range r : blocks_of(m, begin(round.place()), round.stride))
                messages.push_back(w.send(round.process(k), out + r.first * bytes, r.size() * bytes, 1 + int(i)));
        }
        co_await wait_for(std::move(messages));
    }
    messages = {};
    if (outside.has_one) messages.push_back(w.send(outside.process, out, all, last));
    co_await wait_for(std::move(messages));
}

// Each process sends each device what it has for it.
Steps reduce_scatter_at_once(const Work& w) {
    const Members& m = w.members();
    if (m.here.empty()) co_return;
    const std::vector<int>& group = w.devices();
    Scratch scratch;
    std::vector<Message> messages;
    std::vector<std::pair<int, std::vector<const char*>>> mine;  // each device here, what to add up for it
    for (size_t k = 0; k < group.size(); ++k) {
        std::vector<const char*> parts;
        for (int device : m.here) parts.push_back(w.operand(device, k * w.bytes()));
        const char* partial = parts[0];
        if (parts.size() > 1) {
            char* sum = scratch.get(w.bytes());
            add_up(w, parts, sum, w.op.count);
            partial = sum;
        }
        if (!w.is_here(group[k])) {
            messages.push_back(w.send(w.owner(group[k]), partial, w.bytes(), 0));
            continue;
        }
        auto& terms = mine.emplace_back(group[k], std::vector<const char*>()).second;
        for (int p : m.processes) {
            if (p == w.me()) {
                terms.push_back(partial);
                continue;
            }
            char* from = m.processes.size() == 2 ? w.result(group[k]) : scratch.get(w.bytes());
            terms.push_back(from);
            messages.push_back(w.receive(p, from, w.bytes(), 0));
        }
    }
    co_await wait_for(std::move(messages));
    for (auto& [device, terms] : mine) add_up(w, terms, w.result(device), w.op.count);
}

// From the most distant to neighbours, so that what a round leaves to a process lies together.
Steps reduce_scatter_in_rounds(const Work& w) {
    const Members& m = w.members();
    if (m.here.empty()) co_return;
    const size_t bytes = w.bytes(), n = m.processes.size();
    Scratch scratch;
    char* out = w.result(m.here[0]);
    const char* mine = w.operand(m.here[0]);
    const Outside outside(m);
    const std::vector<Round> rounds = rounds_of(m);
    const int last = 1 + int(rounds.size());
    std::vector<Message> messages;
    if (outside.is_me) {
        messages.push_back(w.receive(outside.process, out, bytes, last));
        messages.push_back(w.send(outside.process, mine, n * bytes, 0));
        co_await wait_for(std::move(messages));
        co_return;
    }
    if (outside.has_one) {
        char* from = scratch.get(n * bytes);
        messages.push_back(w.receive(outside.process, from, n * bytes, 0));
        co_await wait_for(std::move(messages));
        char* sum = scratch.get(n * bytes);
        std::vector<const char*> parts{mine, from};
        add_up(w, parts, sum, n * w.op.count);
        mine = sum;
    }
    for (size_t i = rounds.size(); i--;) {
        const Round& round = rounds[i];
        auto blocks = [&](size_t place) { return blocks_of(m, place / round.stride * round.stride, round.stride); };
        const std::vector<Range> own = blocks(round.place());
        std::vector<std::vector<const char*>> parts(own.size(), std::vector<const char*>(round.size));
        messages = {};
        for (size_t k = 0; k < round.size; ++k) {
            if (k != round.digit())
                for (Range r : blocks(round.peer(k)))
                    messages.push_back(w.send(round.process(k), mine + r.first * bytes, r.size() * bytes, 1 + int(i)));
            for (size_t b = 0; b < own.size(); ++b) {
                parts[b][k] = mine + own[b].first * bytes;
                if (k == round.digit()) continue;
                char* from = scratch.get(own[b].size() * bytes);
                parts[b][k] = from;
                messages.push_back(w.receive(round.process(k), from, own[b].size() * bytes, 1 + int(i)));
            }
        }
        co_await wait_for(std::move(messages));
        char* sum = scratch.get(n * bytes);
        for (size_t b = 0; b < own.size(); ++b) add_up(w, parts[b], sum + own[b].first * bytes, own[b].size() * w.op.count);
        mine = sum;
    }
    copy(out, mine + size_t(m.place) * bytes, bytes);
    messages = {};
    if (outside.has_one) messages.push_back(w.send(outside.process, mine + (size_t(m.place) + m.rounds.inner) * bytes, bytes, last));
    co_await wait_for(std::move(messages));
}

Steps all_to_all(const Work& w) {
    const std::vector<int>& group = w.devices();
    std::vector<Message> messages;
    for (size_t from = 0; from < group.size(); ++from)
        for (size_t to = 0; to < group.size(); ++to) {
            bool sends = w.is_here(group[from]), receives = w.is_here(group[to]);
            if (sends && receives)
                copy(w.result(group[to], from * w.bytes()), w.operand(group[from], to * w.bytes()), w.bytes());
            else if (sends)
                messages.push_back(w.send(w.owner(group[to]), w.operand(group[from], to * w.bytes()), w.bytes(), 0));
            else if (receives)
                messages.push_back(w.receive(w.owner(group[from]), w.result(group[to], from * w.bytes()), w.bytes(), 0));
        }
    co_await wait_for(std::move(messages));
}

// Along a binary tree of the processes, whose root is that of the source.
Steps broadcast(const Work& w) {
    const Members& m = w.members();
    if (m.here.empty()) co_return;
    const std::vector<int>& group = w.devices();
    const int source = group[size_t(w.op.root)];
    const int n = int(m.processes.size());
    int first = 0;
    while (m.processes[size_t(first)] != w.owner(source)) ++first;
    const int place = (m.place - first + n) % n;  // counted from the root
    auto process = [&](int k) { return m.processes[size_t((k + first) % n)]; };
    char* out = w.result(m.here[0]);
    std::vector<Message> messages;
    int bit = 1;
    if (w.is_here(source)) {
        copy(out, w.operand(source), w.bytes());
        while (bit < n) bit *= 2;
    } else {
        while (!(place & bit)) bit *= 2;
        messages.push_back(w.receive(process(place - bit), out, w.bytes(), 0));
        co_await wait_for(std::move(messages));
        messages = {};
    }
    for (bit /= 2; bit; bit /= 2)
        if (place + bit < n) messages.push_back(w.send(process(place + bit), out, w.bytes(), 0));
    co_await wait_for(std::move(messages));
    for (int device : m.here) copy(w.result(device), out, w.bytes());
}

Steps permute(const Work& w) {
    std::vector<Message> messages;
    std::vector<bool> arrives(w.all.layout.local.size());
    for (auto [from, to] : w.op.pairs) {
        bool sends = w.is_here(from), receives = w.is_here(to);
        if (receives) arrives[size_t(w.all.layout.place_of(to))] = true;
        if (sends != receives) Processes::all().meet(w.owner(sends ? to : from));
        if (sends && receives) copy(w.result(to), w.operand(from), w.bytes());
        else if (sends) messages.push_back(w.send(w.owner(to), w.operand(from), w.bytes(), 0));
        else if (receives) messages.push_back(w.receive(w.owner(from), w.result(to), w.bytes(), 0));
    }
    for (size_t k = 0; k < arrives.size(); ++k)
        if (!arrives[k] && w.bytes()) memset(w.out[k], 0, w.bytes());
    co_await wait_for(std::move(messages));
}

}  // namespace

Steps steps_of(const Work& w) {
    const Kind kind = w.op.kind;
    const bool sums_or_gathers = kind == Kind::all_gather || kind == Kind::reduce_scatter;
    const bool in_rounds = sums_or_gathers && w.members().rounds.sizes.size() > 1 &&
                           w.members().processes.size() == w.devices().size();  // one device each
    switch (kind) {
        case Kind::all_reduce: return all_reduce(w);
        case Kind::all_gather: return in_rounds ? all_gather_in_rounds(w) : all_gather_at_once(w);
        case Kind::reduce_scatter: return in_rounds ? reduce_scatter_in_rounds(w) : reduce_scatter_at_once(w);
        case Kind::all_to_all: return all_to_all(w);
        case Kind::broadcast: return broadcast(w);
        default: return permute(w);
    }
}

bool perform(const Communication& all, int64_t site, const std::vector<const void*>& in, const std::vector<void*>& out,
             const std::function<bool()>& interrupted) {
    std::lock_guard lock(Processes::all().mutex());
    if (Processes::all().has_failed()) return false;
    const Collective& op = all.sites[size_t(site)];
    for (size_t g = 0; g < op.groups_of_steps(); ++g) {
        Work work{all, op, site, in, out, g};
        work.meet();
        if (!(is_little(work) ? add_little(work, interrupted) : steps_of(work).finish(interrupted, op.text))) return false;
    }
    return true;
}

}  // namespace pb
