// The table of a JitFunction: keys of calls, and the entry of each.
#pragma once
#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

#include "calls/cache_entry.h"
#include "ref.h"

namespace pb {

// One remembered call. Counted by hand (the GIL is held), as comparing keys can run Python code that drops it from the
// table.
struct Slot {
    StoredKey key;
    Entry* entry;  // strong; null while the key has only been seen
    uint64_t used = 0;
    uint64_t hash;
    size_t calls = 0;  // since the entry was set or refused, or since the key was first seen
    size_t wait = 0;   // eager: how many calls go to the function before miss is asked
    bool refused = false;  // whether miss had nothing better than the entry when it was asked again
    int references = 1;

    Slot(const CallKey& k, uint64_t h) : key(k), entry(nullptr), hash(h) {}
    ~Slot() { Py_XDECREF(entry); }
    void set(Entry* e) {
        Entry* old = entry;
        Py_INCREF(e);
        entry = e;
        calls = 0;
        refused = false;
        Py_XDECREF(old);
    }
};

inline void drop(Slot* slot) {
    if (slot && --slot->references == 0) delete slot;
}

struct SlotRef {
    Slot* slot;
    explicit SlotRef(Slot* s) : slot(s) {
        if (slot) ++slot->references;
    }
    SlotRef(SlotRef&& other) noexcept : slot(std::exchange(other.slot, nullptr)) {}
    SlotRef(const SlotRef&) = delete;
    ~SlotRef() { drop(slot); }
};

// Calls of an eager function on large arrays of one shape, and scalars: the same but for that shape.
struct AnySize {
    static constexpr int64_t kLarge = 1 << 15;   // elements
    static constexpr double kPays = 4'000'000;   // elements after which miss is asked for a program
    static constexpr size_t kMost = 64;

    std::vector<uint64_t> words;
    std::vector<AvalInfo*> infos;  // those whose addresses are among the words
    Entry* entry = nullptr;        // strong; null while the calls have only been seen
    double work = 0;               // elements since miss was asked

    AnySize() = default;
    AnySize(const AnySize&) = delete;
    ~AnySize() {
        Py_XDECREF(entry);
        for (AvalInfo* info : infos) release_info(info);
    }

    // The words of a call; returns the info of its large arrays, or null for calls of another kind.
    static const AvalInfo* read(const CallKey& key, std::vector<uint64_t>& words) {
        constexpr size_t kContext = 3;  // words before the first argument's
        if (key.objects.size() || key.words.size() != kContext + key.leaves.size()) return nullptr;
        const AvalInfo* large = nullptr;
        for (size_t i = 0; i < key.leaves.size(); ++i) {
            if (key.leaves[i].kind != LeafKind::array) continue;
            const AvalInfo* info = as_array(key.leaves[i].object)->info;
            if (info->ndim == 0) continue;
            if (info->size < kLarge ||
                (large && (info->ndim != large->ndim || !PyArray_CompareLists(info->dims, large->dims, info->ndim))))
                return nullptr;
            large = info;
        }
        if (!large) return nullptr;
        words.assign(key.words.data(), key.words.data() + key.words.size());
        for (size_t i = 0; i < key.leaves.size(); ++i) {
            if (key.leaves[i].kind != LeafKind::array) continue;
            const AvalInfo* info = as_array(key.leaves[i].object)->info;
            // No other word ends in these bits.
            if (info->ndim)
                words[kContext + i] =
                    uint64_t(info->descr->type_num) << 24 | uint64_t(info->ndim) << 16 | uint64_t(info->weak) << 8 | 0xff;
        }
        return large;
    }
};

struct Table {
    static constexpr size_t kRecent = 8;
    std::unordered_multimap<uint64_t, Slot*> slots;  // each counted once
    Slot* recent[kRecent] = {};                      // used lately, by a hash of the words; borrowed from `slots`
    uint64_t clock = 0;
    size_t maxsize = 0;
    std::vector<std::shared_ptr<AnySize>> any_size;

    // What is known of calls with these words; made if there is nothing yet.
    std::shared_ptr<AnySize> of_any_size(const CallKey& key, const std::vector<uint64_t>& words) {
        for (auto& known : any_size)
            if (known->words == words) return known;
        std::shared_ptr<AnySize> oldest;  // dropped at the end, as that may run code that comes back to this table
        if (any_size.size() >= AnySize::kMost) {
            oldest = std::move(any_size.front());
            any_size.erase(any_size.begin());
        }
        auto made = std::make_shared<AnySize>();
        made->words = words;
        for (size_t i = 0; i < key.leaves.size(); ++i)
            if (key.leaves[i].kind == LeafKind::array && as_array(key.leaves[i].object)->info->ndim == 0)
                made->infos.push_back(retain_info(as_array(key.leaves[i].object)->info));
        any_size.push_back(made);
        return made;
    }

    // The slot of a key; null if there is none, or with an error set. `hash` is set if there is none. `hashable` says
    // whether one can be made.
    SlotRef find(const CallKey& key, uint64_t* hash, bool* hashable) {
        Slot*& last = recent[place_of(key)];
        if (last && last->key.same_words(key)) {
            if (last->key.same_identities(key)) {
                last->used = ++clock;
                return SlotRef(last);
            }
            // Metadata is most often equal to that of the call before, and one == is cheaper than its hash and an ==.
            SlotRef lately(last);
            const int same = lately.slot->key.equal_metadata(key);
            if (same < 0) return SlotRef(nullptr);
            if (same) {
                lately.slot->used = ++clock;
                return lately;
            }
        }
        if (!hash_key(key, hash)) {
            if (PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();  // miss() reports it
            *hashable = false;
            return SlotRef(nullptr);
        }
        std::vector<SlotRef> candidates;
        auto range = slots.equal_range(*hash);
        for (auto it = range.first; it != range.second; ++it)
            if (it->second->key.same_words(key)) candidates.emplace_back(it->second);
        for (SlotRef& candidate : candidates) {
            int same = candidate.slot->key.equal_objects(key);
            if (same < 0) return SlotRef(nullptr);
            if (!same) continue;
            candidate.slot->used = ++clock;
            if (candidate.slot->references > 1) recent[place_of(key)] = candidate.slot;  // else it left the table
            return std::move(candidate);
        }
        return SlotRef(nullptr);
    }

    static size_t place_of(const CallKey& key) {
        uint64_t h = 0;
        for (size_t i = 2; i < key.words.size(); ++i) h = (h ^ key.words[i]) * 0x9e3779b97f4a7c15;
        return h >> 61;
    }
    void forget(Slot* slot) {
        for (Slot*& r : recent)
            if (r == slot) r = nullptr;
    }

    // Room for one more. To find what was not used for longest takes a look at all: an eighth leaves at once.
    void make_room() {
        using Item = decltype(slots)::iterator;
        while (!slots.empty() && slots.size() >= maxsize) {
            std::vector<Item> items;
            for (Item it = slots.begin(); it != slots.end(); ++it) items.push_back(it);
            const size_t leaving = std::min(items.size(), items.size() - maxsize + 1 + maxsize / 8);
            std::nth_element(items.begin(), items.begin() + (leaving - 1), items.end(),
                             [](Item a, Item b) { return a->second->used < b->second->used; });
            items.resize(leaving);
            std::vector<Slot*> gone;  // dropped at the end, as that may run code that comes back to this table
            for (Item it : items) {
                gone.push_back(it->second);
                forget(it->second);
                slots.erase(it);
            }
            for (Slot* slot : gone) drop(slot);
        }
    }

    SlotRef insert(const CallKey& key, uint64_t hash) {
        auto range = slots.equal_range(hash);
        for (auto it = range.first; it != range.second; ++it)  // a concurrent or nested call may have been here
            if (it->second->key.same_words(key) && it->second->key.same_identities(key)) return SlotRef(it->second);
        make_room();
        auto* slot = new Slot(key, hash);
        slot->used = ++clock;
        slots.emplace(hash, slot);
        recent[place_of(key)] = slot;
        return SlotRef(slot);
    }

    size_t entries() const {
        return size_t(std::count_if(slots.begin(), slots.end(), [](auto& item) { return item.second->entry; }));
    }

    void clear() {
        std::unordered_multimap<uint64_t, Slot*> old;
        old.swap(slots);
        std::vector<std::shared_ptr<AnySize>> old_sizes;
        old_sizes.swap(any_size);
        std::fill(recent, recent + kRecent, nullptr);
        for (auto& [hash, slot] : old) drop(slot);
    }
};

}  // namespace pb
