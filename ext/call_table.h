// The table of a JitFunction: keys of calls, and the entry of each.
#pragma once
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "cache_entry.h"
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
    int references = 1;

    Slot(const CallKey& k, uint64_t h) : key(k), entry(nullptr), hash(h) {}
    ~Slot() { Py_XDECREF(entry); }
    void set(Entry* e) {
        Entry* old = entry;
        Py_INCREF(e);
        entry = e;
        calls = 0;
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

struct Table {
    static constexpr size_t kRecent = 8;
    std::unordered_multimap<uint64_t, Slot*> slots;  // each counted once
    Slot* recent[kRecent] = {};                      // used lately, by a hash of the words; borrowed from `slots`
    uint64_t clock = 0;
    size_t maxsize = 0;

    // The slot of a key; null if there is none, or with an error set. `hash` is set if there is none. `hashable` says
    // whether one can be made.
    SlotRef find(const CallKey& key, uint64_t* hash, bool* hashable) {
        Slot*& last = recent[place_of(key)];
        if (last && last->key.same_words(key) && last->key.same_identities(key)) {
            last->used = ++clock;
            return SlotRef(last);
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

    void remove(std::unordered_multimap<uint64_t, Slot*>::iterator it) {
        Slot* slot = it->second;
        slots.erase(it);
        forget(slot);
        drop(slot);
    }

    SlotRef insert(const CallKey& key, uint64_t hash) {
        auto range = slots.equal_range(hash);
        for (auto it = range.first; it != range.second; ++it)  // a concurrent or nested call may have been here
            if (it->second->key.same_words(key) && it->second->key.same_identities(key)) return SlotRef(it->second);
        while (!slots.empty() && slots.size() >= maxsize)
            remove(std::min_element(slots.begin(), slots.end(),
                                    [](auto& a, auto& b) { return a.second->used < b.second->used; }));
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
        std::fill(recent, recent + kRecent, nullptr);
        for (auto& [hash, slot] : old) drop(slot);
    }
};

}  // namespace pb
