// Half-trees: ePrint 2022/1431; the definition is in `volery_pcg::ggm`.
//
// A tree has h levels, h = 8 + E. `top` makes levels 1 to 5 + E, one warp for two trees: to level 5
// half a warp each, then both in turn, where lane i has the nodes below node i of level 5. `bottom`
// makes the last three levels, from two nodes a lane. Of a
// punctured tree the path's nodes count as zero: `top` puts the path's siblings in their places, as
// it has all nodes of a level; `bottom` leaves out the node of level h - 3 on the path, and `mend`
// makes the 8 leaves below it.
//
// Level l of tree t has its sum at `levels[t h + l - 1]`: of the left nodes. `right` has the sums
// of the right leaves, `parents` those of all nodes of level h - 3.
#pragma once
#include "base.cuh"

// Leaves that add up to their parents and lose their lowest bit; H(s) and H(s + 1); the words of
// H(s), modulo 2^61 - 1.
enum Leaf { CORRELATED, HASHED, WORDS };

template <int W>
struct Width {
    static constexpr int value = W;
};

struct Trees {
    u32 trees;
    u32 depth;
    const uint4* keys;
    uint4* schedules;  // of the keys, 11 blocks a tree
    uint4* nodes;      // of level h - 3
    uint4* levels;
    uint4* right;
    uint4* parents;
    uint4* leaves;
    // Of punctured trees: the leaf that is missing, the sum of the side that its path does not take
    // at each level, and of a vector OLE the value from which all other leaves are taken.
    const u32* alphas;
    const uint4* opened;
    const uint4* totals;
};

// Children of `nodes`, in place, from the last parent to the first, N at a time. The left child of
// parent i counts in the sum with `mask(i)`.
template <int W, int N, class M>
__device__ __forceinline__ void split(Block* nodes, const uint4* keys, Block& left, M mask) {
    EACH for (int g = W - N; g >= 0; g -= N) {
        Block parents[N], hashes[N];
        EACH for (int n = 0; n < N; n++) parents[n] = nodes[g + n];
        circular(parents, hashes, keys);
        EACH for (int n = N - 1; n >= 0; n--) {
            left ^= hashes[n] & mask(g + n);
            nodes[2 * (g + n) + 1] = hashes[n] ^ parents[n];
            nodes[2 * (g + n)] = hashes[n];
        }
    }
}

// The sum over the lanes of this half of a warp.
__device__ __forceinline__ Block sum_half(const Block& b) {
    u32 second = mask(lane_of() & 16);
    return (sum_lanes(b & ~second) & ~second) ^ (sum_lanes(b & second) & second);
}

// The round keys, by all lanes of half a warp: to shared memory, and for `bottom`.
__device__ __forceinline__ void expand_key(const Trees& t, u32 tree, uint4* out) {
    u32 i = lane_of() & 15, constant = 1;
    uint4 key = t.keys[tree], mine = key;
    _Pragma("unroll 1") for (u32 round = 1; round < ROUNDS; round++) {
        key = next_key(key, constant);
        constant = doubled(constant);
        if (i == round) mine = key;
    }
    __syncwarp();
    if (i < ROUNDS) t.schedules[(u64)tree * ROUNDS + i] = out[i] = mine;
    __syncwarp();
}

// Levels 6 to 5 + E of a tree: `node` is the lane's node of level 5.
template <int E, bool PUNCTURED>
__device__ __forceinline__ void lower(
    const Trees& t, u32 tree, const uint4* keys, const Block& node) {
    u32 lane = lane_of(), h = t.depth, alpha = PUNCTURED ? t.alphas[tree] : 0;
    const uint4* opened = t.opened + (u64)tree * h;
    uint4* levels = t.levels + (u64)tree * h;
    Block nodes[1 << E] = {node};
    bool here = PUNCTURED && lane == alpha >> (h - 5);
    auto next = [&](auto width) {
        constexpr int W = decltype(width)::value;
        u32 l = W == 1 ? 6 : W == 2 ? 7 : W == 4 ? 8 : 9;
        u32 path = alpha >> (h - l) & (2 * W - 1);
        Block all = {}, left = {};
        if (PUNCTURED)
            EACH for (int c = 0; c < W; c++) all ^= nodes[c];
        Block sibling = PUNCTURED ? block(opened[l - 1]) : Block{};
        split<W, W == 1 ? 1 : 2>(
            nodes, keys, left, [&](int c) { return mask(!here || c != (int)(path >> 1)); });
        if (!PUNCTURED) {
            Block sum = sum_lanes(left);
            if (lane == 0) levels[l - 1] = words(sum);
        } else {
            // Of children that add up to their parents, the right sum.
            sibling ^= sum_lanes(left ^ (all & mask(!(path & 1))));
            EACH for (int c = 0; c < 2 * W; c++) {
                u32 other = mask(!(here && c >> 1 == path >> 1));
                u32 is = mask(here && c == (path ^ 1));
                nodes[c] = (nodes[c] & other) ^ (sibling & is);
            }
        }
    };
    next(Width<1>());
    if constexpr (E > 1) next(Width<2>());
    if constexpr (E > 2) next(Width<4>());
    if constexpr (E > 3) next(Width<8>());
    uint4* out = t.nodes + ((u64)tree << (5 + E)) + lane;
    EACH for (int c = 0; c < 1 << E; c++) out[c * 32] = words(nodes[c]);
}

// `roots` has delta after the last.
template <int E, bool PUNCTURED>
__device__ __forceinline__ void top(const Trees& t, const uint4* roots) {
    load_table();
    u32 lane = lane_of(), h = t.depth;
    uint4* both_keys = (uint4*)(shared_words + TABLE) + (threadIdx.x >> 5) * 2 * ROUNDS;
    for (u32 first = (blockIdx.x * blockDim.x + threadIdx.x) / 32 * 2; first < t.trees;
         first += gridDim.x * blockDim.x / 32 * 2) {
        // Levels 2 to 5. Of a last tree alone both halves make the same.
        u32 half = lane >> 4, i = lane & 15, tree = min(first + half, t.trees - 1);
        const uint4* keys = both_keys + half * ROUNDS;
        expand_key(t, tree, both_keys + half * ROUNDS);
        u32 alpha = PUNCTURED ? t.alphas[tree] : 0;
        const uint4* opened = t.opened + (u64)tree * h;
        uint4* levels = t.levels + (u64)tree * h;
        // A parent is at all lanes that are its number modulo their count; the right child is the
        // sum of the left one and the parent.
        Block parent, left;
        if (PUNCTURED) {
            parent = block(opened[0]) & mask((i & 1) != alpha >> (h - 1));
        } else {
            Block root = block(roots[tree]);
            if (i == 0) levels[0] = words(root);
            parent = root ^ (block(roots[t.trees]) & mask(i & 1));
        }
        _Pragma("unroll 1") for (u32 l = 2;; l++) {
            u32 parents = 1u << (l - 1), path = alpha >> (h - l);
            Block sibling = PUNCTURED ? block(opened[l - 1]) : Block{};
            left = circular(parent, keys);
            if (PUNCTURED) {
                bool here = (i & (parents - 1)) == path >> 1, right = !(path & 1);
                sibling ^= sum_half((left ^ (parent & mask(right))) & mask(i < parents && !here));
                left = (left & mask(!here)) ^ (sibling & mask(here && !right));
                parent = (parent & mask(!here)) ^ (sibling & mask(here));
            } else {
                Block sum = sum_half(left & mask(i < parents));
                if (i == 0) levels[l - 1] = words(sum);
            }
            if (l == 5) break;
            u32 from = (lane & 16) | (i & (2 * parents - 1)) >> 1;
            parent = shuffle(left, from) ^ (shuffle(parent, from) & mask(i & 1));
        }
        _Pragma("unroll 1") for (u32 k = 0; k < 2; k++)
            lower<E, PUNCTURED>(t, min(first + k, t.trees - 1), both_keys + k * ROUNDS,
                shuffle(left, 16 * k + lane / 2) ^
                    (shuffle(parent, 16 * k + lane / 2) & mask(lane & 1)));
    }
}

// Sums of a tree's part, added to those of the tree.
template <int LEAF>
struct Sums {
    Block left[2] = {}; // of levels h - 2 and h - 1
    Block parents = {};
    Block leaf[2] = {}; // of a correlated tree the left one only
    u64 word[2] = {};
};

// The leaves below four parents of level h - 1, in place: two of 16 bytes each, or one block of two
// words each.
template <int LEAF>
__device__ __forceinline__ void grow_leaves(
    Block* leaves, const uint4* keys, Sums<LEAF>& s, u32 m) {
    constexpr int PER = LEAF == HASHED ? 2 : 1, STEP = 4 / PER;
    EACH for (int g = 4 - STEP; g >= 0; g -= STEP) {
        Block in[4], out[4];
        EACH for (int n = 0; n < 4; n++) {
            in[n] = leaves[g + n / PER];
            in[n].w[0] ^= n % PER;
        }
        circular(in, out, keys);
        EACH for (int n = STEP - 1; n >= 0; n--) {
            Block left = out[PER * n];
            if (LEAF == WORDS) {
                u64 l = reduce61(low(left)), r = reduce61(high(left)), m64 = m | (u64)m << 32;
                leaves[g + n] = block(l, r);
                s.word[0] = fold61(s.word[0] + (l & m64));
                s.word[1] = fold61(s.word[1] + (r & m64));
                continue;
            }
            Block right = LEAF == HASHED ? out[PER * n + 1] : left ^ in[n];
            s.leaf[0] ^= left & m;
            if (LEAF == HASHED) s.leaf[1] ^= right & m;
            if (LEAF == CORRELATED) left.w[0] &= ~1u, right.w[0] &= ~1u;
            leaves[2 * (g + n) + 1] = right;
            leaves[2 * (g + n)] = left;
        }
    }
}

// Of N lanes with N blocks each: block k of lane r becomes block r of lane k.
template <int N>
__device__ __forceinline__ void exchange(Block* b) {
    EACH for (u32 d = N / 2; d > 0; d /= 2) {
        bool up = lane_of() & d;
        EACH for (int k = 0; k < N; k++) {
            if (k & d) continue;
            EACH for (int i = 0; i < 4; i++) {
                u32 sent = up ? b[k].w[i] : b[k + d].w[i];
                u32 got = __shfl_xor_sync(ALL, sent, d);
                (up ? b[k].w[i] : b[k + d].w[i]) = got;
            }
        }
    }
}

__device__ __forceinline__ void add_lanes(uint4* place, const Block& b) {
    Block sum = sum_lanes(b);
    u32 i = lane_of(), odd = i & 1;
    u32 word = i & 2 ? (odd ? sum.w[3] : sum.w[2]) : (odd ? sum.w[1] : sum.w[0]);
    if (i < 4) atomicXor((u32*)place + i, word);
}

// At most 8 sums below 2^61 are added to one place: it does not overflow.
__device__ __forceinline__ void add_lanes61(uint4* place, u64 x) {
    u64 sum = sum_lanes61(x);
    if (lane_of() == 0) atomicAdd((u64*)place, sum);
}

template <int LEAF, bool PUNCTURED>
__device__ __forceinline__ void bottom(const Trees& t, u32* next) {
    load_table();
    constexpr int N = LEAF == WORDS ? 4 : 8; // blocks of leaves below a node
    u32 lane = lane_of(), h = t.depth, extra = h - 8, parts = 1u << (extra - 1);
    uint4* keys = (uint4*)(shared_words + TABLE) + (threadIdx.x >> 5) * ROUNDS;
    for (;;) {
        u32 part = 0;
        if (lane == 0) part = atomicAdd(next, 1);
        part = __shfl_sync(ALL, part, 0);
        if (part >= t.trees * parts) break;
        u32 tree = part / parts, first = part % parts * 2;
        if (lane < ROUNDS) keys[lane] = t.schedules[(u64)tree * ROUNDS + lane];
        __syncwarp();
        u32 missing = PUNCTURED ? t.alphas[tree] >> 3 : 0, m[2];
        Sums<LEAF> s;
        Block b[8];
        EACH for (int i = 0; i < 2; i++) {
            m[i] = mask(!PUNCTURED || (lane << extra | (first + i)) != missing);
            b[i] = block(__ldcs(t.nodes + ((u64)tree << (h - 3)) + (first + i) * 32 + lane));
            s.parents ^= b[i] & m[i];
        }
        split<2, 2>(b, keys, s.left[0], [&](int n) { return m[n]; });
        split<4, 4>(b, keys, s.left[1], [&](int n) { return m[n / 2]; });
        _Pragma("unroll 1") for (u32 i = 0; i < 2; i++) {
            Block leaves[8];
            EACH for (int n = 0; n < 4; n++) leaves[n] = i ? b[4 + n] : b[n];
            grow_leaves<LEAF>(leaves, keys, s, i ? m[1] : m[0]);
            exchange<N>(leaves);
            u32 r = lane % N, group = lane - r;
            uint4* out = t.leaves + ((u64)tree << (h - 3)) * N + r;
            EACH for (int k = 0; k < N; k++)
                __stcs(out + ((group + k) << extra | (first + i)) * N, words(leaves[k]));
        }
        __syncwarp();
        uint4* levels = t.levels + (u64)tree * h + h - 3;
        EACH for (int i = 0; i < 2; i++) add_lanes(levels + i, s.left[i]);
        if (LEAF == WORDS) {
            add_lanes61(levels + 2, s.word[0]);
            add_lanes61(t.right + tree, s.word[1]);
        } else {
            add_lanes(levels + 2, s.leaf[0]);
            if (LEAF == HASHED) add_lanes(t.right + tree, s.leaf[1]);
        }
        if (PUNCTURED) add_lanes(t.parents + tree, s.parents);
    }
}

// The 8 leaves below the node of level h - 3 on the path, one thread a tree.
template <int LEAF>
__device__ __forceinline__ void mend(const Trees& t) {
    load_table();
    u32 begin = blockIdx.x * blockDim.x, tree = begin + threadIdx.x, h = t.depth;
    uint4* all_keys = (uint4*)(shared_words + TABLE);
    for (u32 i = threadIdx.x; i < min(blockDim.x, t.trees - begin) * ROUNDS; i += blockDim.x)
        all_keys[i] = t.schedules[(u64)begin * ROUNDS + i];
    __syncthreads();
    if (tree >= t.trees) return;
    const uint4* keys = all_keys + threadIdx.x * ROUNDS;
    const uint4* opened = t.opened + (u64)tree * h + h - 3;
    const uint4* left = t.levels + (u64)tree * h + h - 3;
    u32 alpha = t.alphas[tree];
    u32 path[3] = {alpha >> 2 & 1, alpha >> 1 & 1, alpha & 1};
    // The sum of the nodes of a level is that of their parents, and of the sibling of the path.
    Block parents = block(t.parents[tree]);
    Block a = block(opened[0]) ^ block(left[0]) ^ (parents & mask(!path[0]));
    parents ^= a;
    Block a0 = circular(a, keys), a1 = a0 ^ a;
    Block b = block(opened[1]) ^ block(left[1]) ^ a0 ^ (parents & mask(!path[1]));
    parents ^= b;
    constexpr int PER = LEAF == HASHED ? 2 : 1;
    Block last[3] = {a0, a1, b}, in[3 * PER], hashes[3 * PER];
    EACH for (int n = 0; n < 3 * PER; n++) {
        in[n] = last[n / PER];
        in[n].w[0] ^= n % PER;
    }
    circular(in, hashes, keys);
    u32 places[3] = {(path[0] ^ 1) * 4, (path[0] ^ 1) * 4 + 2, path[0] * 4 + (path[1] ^ 1) * 2};
    u32 sibling = path[0] * 4 + path[1] * 2 + (path[2] ^ 1);
    u64 first = ((u64)tree << h) + (alpha & ~7u);
    if (LEAF == WORDS) {
        u64* out = (u64*)t.leaves + first;
        u64 l = reduce61(*(const u64*)(left + 2)), r = reduce61(*(const u64*)(t.right + tree));
        EACH for (int n = 0; n < 3; n++) {
            u64 x = reduce61(low(hashes[n])), y = reduce61(high(hashes[n]));
            out[places[n]] = x;
            out[places[n] + 1] = y;
            l = reduce61(l + x);
            r = reduce61(r + y);
        }
        u64 known = path[2] ? l : r;
        u64 z = reduce61(*(const u64*)(opened + 2) + negative61(known));
        out[sibling] = z;
        u64 total = *(const u64*)(t.totals + tree);
        out[sibling ^ 1] = reduce61(total + negative61(reduce61(l + r + z)));
    } else {
        uint4* out = t.leaves + first;
        Block l = block(left[2]), r = LEAF == HASHED ? block(t.right[tree]) : Block{};
        u32 kept = LEAF == CORRELATED ? ~1u : ALL;
        EACH for (int n = 0; n < 3; n++) {
            Block x = hashes[PER * n];
            Block y = LEAF == HASHED ? hashes[PER * n + 1] : x ^ last[n];
            l ^= x;
            if (LEAF == HASHED) r ^= y;
            x.w[0] &= kept;
            y.w[0] &= kept;
            out[places[n]] = words(x);
            out[places[n] + 1] = words(y);
        }
        if (LEAF == CORRELATED) r = l ^ parents;
        Block z = block(opened[2]) ^ (l & mask(path[2])) ^ (r & mask(!path[2]));
        Block missing = l ^ r ^ z;
        if (LEAF == HASHED) missing ^= block(t.totals[tree]);
        z.w[0] &= kept;
        // The leaf carries the choice bit.
        missing.w[0] |= ~kept;
        out[sibling] = words(z);
        out[sibling ^ 1] = words(missing);
    }
}

#define TOP(E)                                                                                   \
    extern "C" __global__ void __launch_bounds__(256) top_##E(Trees t, const uint4* roots) {     \
        top<E, false>(t, roots);                                                                 \
    }                                                                                            \
    extern "C" __global__ void __launch_bounds__(256) top_##E##_punctured(Trees t) {             \
        top<E, true>(t, nullptr);                                                                \
    }
TOP(1)
TOP(2)
TOP(3)
TOP(4)

#ifndef BOTTOM_BLOCKS
#define BOTTOM_BLOCKS 2
#endif
#define BOTTOM(NAME, LEAF)                                                                       \
    extern "C" __global__ void __launch_bounds__(256, BOTTOM_BLOCKS) bottom_##NAME(              \
        Trees t, u32* next) {                                                                    \
        bottom<LEAF, false>(t, next);                                                            \
    }                                                                                            \
    extern "C" __global__ void __launch_bounds__(256, BOTTOM_BLOCKS) bottom_##NAME##_punctured(  \
        Trees t, u32* next) {                                                                    \
        bottom<LEAF, true>(t, next);                                                             \
    }                                                                                            \
    extern "C" __global__ void __launch_bounds__(64) mend_##NAME(Trees t) { mend<LEAF>(t); }
BOTTOM(correlated, CORRELATED)
BOTTOM(hashed, HASHED)
BOTTOM(words, WORDS)
