// Half-trees: ePrint 2022/1431; the definition is in `volery_pcg::ggm`.
//
// A tree has h levels, h = 8 + E. `top` makes levels 1 to 5 + E, one warp a tree: lane i has the
// nodes below node i of level 5. `bottom` makes the last three levels, 8 leaves a lane. Of a
// punctured tree the path's nodes count as zero: `top` puts the path's siblings in their places, as
// it has all nodes of a level; `bottom` leaves out the node of level h - 3 on the path, and `mend`
// makes the 8 leaves below it.
//
// Level l of tree t has its sum at `levels[t h + l - 1]`: of the left nodes. `right` has the sums of
// the right leaves, `parents` those of all nodes of level h - 3.
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
    const uint4* keys; // 11 blocks a tree
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

__device__ __forceinline__ const uint4* warp_keys(const Trees& t, u32 tree) {
    uint4* keys = (uint4*)(shared_words + TABLE) + (threadIdx.x >> 5) * ROUNDS;
    __syncwarp();
    if (lane_of() < ROUNDS) keys[lane_of()] = t.keys[(u64)tree * ROUNDS + lane_of()];
    __syncwarp();
    return keys;
}

// Children of `nodes`, in place, from the last parent to the first, two at a time.
template <int W>
__device__ __forceinline__ void split(Block* nodes, const uint4* keys, Block& left, u32 without) {
    constexpr int N = W == 1 ? 1 : 2;
    EACH for (int g = W - N; g >= 0; g -= N) {
        Block parents[N], hashes[N];
        EACH for (int n = 0; n < N; n++) parents[n] = nodes[g + n];
        circular(parents, hashes, keys);
        EACH for (int n = N - 1; n >= 0; n--) {
            left ^= hashes[n] & mask(g + n != (int)without);
            nodes[2 * (g + n) + 1] = hashes[n] ^ parents[n];
            nodes[2 * (g + n)] = hashes[n];
        }
    }
}

template <int E, bool PUNCTURED>
__device__ __forceinline__ void top(const Trees& t, const uint4* roots, uint4 delta) {
    load_table();
    u32 lane = lane_of(), h = t.depth;
    for (u32 tree = (blockIdx.x * blockDim.x + threadIdx.x) >> 5; tree < t.trees;
         tree += gridDim.x * blockDim.x >> 5) {
        const uint4* keys = warp_keys(t, tree);
        u32 alpha = PUNCTURED ? t.alphas[tree] : 0;
        const uint4* opened = t.opened + (u64)tree * h;
        uint4* levels = t.levels + (u64)tree * h;
        Block nodes[1 << E];
        if (PUNCTURED) {
            nodes[0] = block(opened[0]) & mask((lane & 1) != (alpha >> (h - 1)));
        } else {
            Block root = block(roots[tree]);
            if (lane == 0) levels[0] = words(root);
            nodes[0] = root ^ (block(delta) & mask(lane & 1));
        }
        // Levels 2 to 5: node i at all lanes that are i modulo the width of the level.
        _Pragma("unroll 1") for (u32 l = 2; l <= 5; l++) {
            u32 i = lane & ((1u << l) - 1), path = alpha >> (h - l);
            Block parent = shuffle(nodes[0], i >> 1);
            nodes[0] = circular(parent, keys) ^ (parent & mask(lane & 1));
            u32 side = PUNCTURED ? ~path & 1 : 0;
            bool counts = lane < (1u << l) && (lane & 1) == side;
            if (PUNCTURED) counts = counts && i >> 1 != path >> 1;
            Block sum = sum_lanes(nodes[0] & mask(counts));
            if (PUNCTURED) {
                Block sibling = block(opened[l - 1]) ^ sum;
                u32 is = mask(i == (path ^ 1)), other = mask(i >> 1 != path >> 1);
                nodes[0] = (nodes[0] & other) ^ (sibling & is);
            } else if (lane == 0) {
                levels[l - 1] = words(sum);
            }
        }
        bool here = PUNCTURED && lane == alpha >> (h - 5);
        auto next = [&](auto width) {
            constexpr int W = decltype(width)::value;
            u32 l = W == 1 ? 6 : W == 2 ? 7 : W == 4 ? 8 : 9;
            u32 path = alpha >> (h - l) & (2 * W - 1);
            Block all = {}, left = {};
            if (PUNCTURED)
                EACH for (int c = 0; c < W; c++) all ^= nodes[c];
            split<W>(nodes, keys, left, here ? path >> 1 : W);
            if (!PUNCTURED) {
                Block sum = sum_lanes(left);
                if (lane == 0) levels[l - 1] = words(sum);
            } else {
                // Of children that add up to their parents, the right sum.
                Block sum = sum_lanes(left ^ (all & mask(!(path & 1))));
                Block sibling = block(opened[l - 1]) ^ sum;
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
}

// Sums of a tree's part, added to those of the tree.
template <int LEAF>
struct Sums {
    Block left[2] = {}; // of levels h - 2 and h - 1
    Block parents = {};
    Block leaf[2] = {}; // of a correlated tree the left one only
    u64 word[2] = {};
};

// The leaves below parents of level h - 1, in place: two of 16 bytes each, or one block of two
// words each.
template <int LEAF, int N>
__device__ __forceinline__ void grow_leaves(Block* leaves, const uint4* keys, Sums<LEAF>& s, u32 m) {
    constexpr int STEP = 2;
    EACH for (int g = N - STEP; g >= 0; g -= STEP) {
        Block in[STEP], out[STEP];
        EACH for (int n = 0; n < STEP; n++) in[n] = leaves[g + n];
        circular(in, out, keys);
        if (LEAF == WORDS) {
            EACH for (int n = 0; n < STEP; n++) {
                u64 l = reduce61(low(out[n])), r = reduce61(high(out[n]));
                leaves[g + n] = block(l, r);
                u64 m64 = m | (u64)m << 32;
                s.word[0] = fold61(s.word[0] + (l & m64));
                s.word[1] = fold61(s.word[1] + (r & m64));
            }
        } else if (LEAF == HASHED) {
            Block other[STEP];
            EACH for (int n = 0; n < STEP; n++) in[n].w[0] ^= 1;
            circular(in, other, keys);
            EACH for (int n = STEP - 1; n >= 0; n--) {
                s.leaf[0] ^= out[n] & m;
                s.leaf[1] ^= other[n] & m;
                leaves[2 * (g + n) + 1] = other[n];
                leaves[2 * (g + n)] = out[n];
            }
        } else {
            EACH for (int n = STEP - 1; n >= 0; n--) {
                s.leaf[0] ^= out[n] & m;
                leaves[2 * (g + n) + 1] = out[n] ^ in[n];
                leaves[2 * (g + n)] = out[n];
            }
            EACH for (int n = 0; n < 2 * STEP; n++) leaves[2 * g + n].w[0] &= ~1u;
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
    if (lane_of() < 4) atomicXor((u32*)place + lane_of(), lane_of() & 2 ? (lane_of() & 1 ? sum.w[3] : sum.w[2])
                                                          : (lane_of() & 1 ? sum.w[1] : sum.w[0]));
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
    constexpr u32 TOGETHER = 2;              // of 32 nodes
    u32 lane = lane_of(), h = t.depth, extra = h - 8;
    u32 parts = (1u << extra) / TOGETHER;
    for (;;) {
        u32 part = 0;
        if (lane == 0) part = atomicAdd(next, 1);
        part = __shfl_sync(ALL, part, 0);
        if (part >= t.trees * parts) break;
        u32 tree = part / parts, first = part % parts * TOGETHER;
        const uint4* keys = warp_keys(t, tree);
        u32 missing = PUNCTURED ? t.alphas[tree] >> 3 : 0;
        Sums<LEAF> s;
        _Pragma("unroll 1") for (u32 c = first; c < first + TOGETHER; c++) {
            u32 node = lane << extra | c;
            u32 m = mask(!PUNCTURED || node != missing);
            Block b[8];
            b[0] = block(__ldcs(t.nodes + ((u64)tree << (h - 3)) + c * 32 + lane));
            s.parents ^= b[0] & m;
            split<1>(b, keys, s.left[0], m ? 1 : 0);
            split<2>(b, keys, s.left[1], 2);
            grow_leaves<LEAF, 4>(b, keys, s, m);
            exchange<N>(b);
            u32 r = lane % N, group = lane - r;
            uint4* out = t.leaves + ((u64)tree << (h - 3)) * N + r;
            EACH for (int k = 0; k < N; k++)
                __stcs(out + ((group + k) << extra | c) * N, words(b[k]));
        }
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
    u32 tree = blockIdx.x * blockDim.x + threadIdx.x, h = t.depth;
    if (tree >= t.trees) return;
    const uint4* keys = t.keys + (u64)tree * ROUNDS;
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
    Block last[3] = {a0, a1, b};
    u32 places[3] = {(path[0] ^ 1) * 4, (path[0] ^ 1) * 4 + 2, path[0] * 4 + (path[1] ^ 1) * 2};
    u32 sibling = path[0] * 4 + path[1] * 2 + (path[2] ^ 1);
    u64 first = ((u64)tree << h) + (alpha & ~7u);
    if (LEAF == WORDS) {
        u64* out = (u64*)t.leaves + first;
        u64 l = reduce61(*(const u64*)(left + 2)), r = reduce61(*(const u64*)(t.right + tree));
        EACH for (int n = 0; n < 3; n++) {
            Block hash = circular(last[n], keys);
            u64 x = reduce61(low(hash)), y = reduce61(high(hash));
            out[places[n]] = x;
            out[places[n] + 1] = y;
            l = reduce61(l + x);
            r = reduce61(r + y);
        }
        u64 known = path[2] ? l : r;
        u64 z = reduce61(*(const u64*)(opened + 2) + negative61(known));
        out[sibling] = z;
        out[sibling ^ 1] = reduce61(*(const u64*)(t.totals + tree) + negative61(reduce61(l + r + z)));
    } else {
        uint4* out = t.leaves + first;
        Block l = block(left[2]), r = LEAF == HASHED ? block(t.right[tree]) : Block{};
        u32 kept = LEAF == CORRELATED ? ~1u : ALL;
        EACH for (int n = 0; n < 3; n++) {
            Block x = circular(last[n], keys), y = x ^ last[n];
            if (LEAF == HASHED) {
                Block flipped = last[n];
                flipped.w[0] ^= 1;
                y = circular(flipped, keys);
                r ^= y;
            }
            l ^= x;
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
    extern "C" __global__ void __launch_bounds__(256) top_##E(Trees t, const uint4* r, uint4 d) { \
        top<E, false>(t, r, d);                                                                  \
    }                                                                                            \
    extern "C" __global__ void __launch_bounds__(256) top_##E##_punctured(Trees t) {             \
        top<E, true>(t, nullptr, make_uint4(0, 0, 0, 0));                                        \
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
    extern "C" __global__ void __launch_bounds__(128) mend_##NAME(Trees t) { mend<LEAF>(t); }
BOTTOM(correlated, CORRELATED)
BOTTOM(hashed, HASHED)
BOTTOM(words, WORDS)
