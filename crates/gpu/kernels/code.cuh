// The local code of primal LPN (`volery_lpn::LocalCode`), with the shares of the noise vector: the
// outputs of a round.
//
// Entry r of the table has the base correlations of all instances side by side, in PARTS parts of
// which a lane adds up one. A warp makes 96 columns at a time: 160 AES blocks, from which it cuts
// 960 indices into shared memory, and over GF(2^128) 96 blocks more, the factors.
#pragma once
#include "base.cuh"

struct Code {
    const uint4* keys; // 11 blocks
    u32 rows;          // a power of two, at most 2^21
    u32 depth;         // of the trees
    u64 first;         // the output at `u` and `v`
    u64 end;
    const char* leaves;
    const char* table;
    char* u;
    char* v;
    u32 stride; // bytes from an output to the next
};

constexpr u32 WEIGHT = 10;
constexpr u32 COLUMNS = 96;
constexpr u32 BLOCKS = COLUMNS * WEIGHT / 6;

// The indices of 96 columns, times the bytes of an entry, from block `first` of the stream on: of 8
// words of 64 bits the lowest pieces of 21 bits of all, then the middle ones, then the highest.
__device__ __forceinline__ void cut_indices(
    u32* out, u64 first, const uint4* keys, u32 rows, u32 bytes) {
    Block b[BLOCKS / 32];
    EACH for (int s = 0; s < BLOCKS / 32; s++) b[s] = block(first + s * 32 + lane_of(), 0);
    encrypt(b, keys);
    EACH for (int s = 0; s < BLOCKS / 32; s++) {
        EACH for (int e = 0; e < 2; e++) {
            u64 word = e ? high(b[s]) : low(b[s]);
            u32 number = 64 * s + 2 * lane_of() + e;
            EACH for (int piece = 0; piece < 3; piece++)
                out[number / 8 * 24 + piece * 8 + number % 8] =
                    ((u32)(word >> 21 * piece) & (rows - 1)) * bytes;
        }
    }
}

// The factors of 96 columns: factor c_j is block 2^64 + j of the stream.
__device__ __forceinline__ void cut_factors(uint4* out, u64 first, const uint4* keys) {
    Block b[COLUMNS / 32];
    EACH for (int s = 0; s < COLUMNS / 32; s++) b[s] = block(first + s * 32 + lane_of(), 1);
    encrypt(b, keys);
    EACH for (int s = 0; s < COLUMNS / 32; s++) out[s * 32 + lane_of()] = words(b[s]);
}

template <class T>
__device__ __forceinline__ T load(const char* part, u32 offset) {
    return __ldg((const T*)(part + offset));
}

// Sums of ten entries, and what becomes of them with a leaf. `T` is a part of an entry, `PER` the
// parts of an instance, `LEAF` a leaf.
struct Xor {
    typedef uint4 T;
    static constexpr u32 PER = 1;
    static constexpr bool FACTORS = false;
};
struct XorFactors {
    typedef uint4 T;
    static constexpr u32 PER = 1;
    static constexpr bool FACTORS = true;
};
struct XorPairs {
    typedef uint4 T;
    static constexpr u32 PER = 2;
    static constexpr bool FACTORS = true;
};
struct Words61 {
    typedef u64 T;
    static constexpr u32 PER = 1;
    static constexpr bool FACTORS = false;
};
struct Pairs61 {
    typedef ulonglong2 T;
    static constexpr u32 PER = 1;
    static constexpr bool FACTORS = false;
};

// Where a lane's sum comes from and goes to.
struct Sum {
    const char* table; // the lane's part of entry 0
    u32 part;
    u64 place;
    bool in;
    const uint4* factor;
};

template <class K>
__device__ __forceinline__ void sum_entries(K, const Code& c, const Sum& s, const u32* index) {
    Block half[2] = {};
    EACH for (int j = 0; j < WEIGHT; j++)
        half[K::FACTORS && j >= WEIGHT / 2] ^= block(load<uint4>(s.table, index[j]));
    Block sum = half[0];
    if (K::FACTORS) sum ^= multiply128(block(*s.factor), half[1]);
    bool value = K::PER == 2 && s.part % 2 == 0;
    if (!s.in) return;
    if (!value) sum ^= block(__ldcs((const uint4*)c.leaves + s.place));
    __stcs((uint4*)((value ? c.u : c.v) + (s.place - c.first) * c.stride), words(sum));
}
__device__ __forceinline__ void sum_entries(
    Words61, const Code& c, const Sum& s, const u32* index) {
    u64 sum = 0;
    EACH for (int j = 0; j < WEIGHT; j++) {
        if (j == WEIGHT / 2) sum = fold61(sum);
        sum += load<u64>(s.table, index[j]);
    }
    if (!s.in) return;
    sum = reduce61(sum + __ldcs((const u64*)c.leaves + s.place));
    __stcs((u64*)(c.v + (s.place - c.first) * c.stride), sum);
}
__device__ __forceinline__ void sum_entries(
    Pairs61, const Code& c, const Sum& s, const u32* index) {
    u64 u = 0, v = 0;
    EACH for (int j = 0; j < WEIGHT; j++) {
        if (j == WEIGHT / 2) u = fold61(u), v = fold61(v);
        ulonglong2 entry = load<ulonglong2>(s.table, index[j]);
        u += entry.x;
        v += entry.y;
    }
    if (!s.in) return;
    v = reduce61(v + __ldcs((const u64*)c.leaves + s.place));
    __stcs((u64*)(c.u + (s.place - c.first) * c.stride), reduce61(u));
    __stcs((u64*)(c.v + (s.place - c.first) * c.stride), v);
}

template <class K, u32 B>
__device__ __forceinline__ void encode(const Code& c) {
    load_table();
    constexpr u32 PARTS = B * K::PER, STEP = 32 / PARTS, PART = sizeof(typename K::T);
    constexpr u32 SCRATCH = COLUMNS * (WEIGHT + (K::FACTORS ? 4 : 0));
    u32* indices = shared_words + TABLE + (threadIdx.x >> 5) * SCRATCH;
    uint4* factors = (uint4*)(indices + COLUMNS * WEIGHT);
    u32 size = 1u << c.depth, unit = size * B;
    u64 from = c.first / unit * size, to = (c.end + unit - 1) / unit * size;
    u32 within = lane_of() / PARTS;
    Sum s;
    s.part = lane_of() % PARTS;
    s.table = c.table + s.part * PART;
    u32 instance = s.part / K::PER;
    u64 warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, warps = gridDim.x * blockDim.x >> 5;
    for (u64 group = from / COLUMNS + warp; group * COLUMNS < to; group += warps) {
        __syncwarp();
        cut_indices(indices, group * BLOCKS, c.keys, c.rows, PARTS * PART);
        if (K::FACTORS) cut_factors(factors, group * COLUMNS, c.keys);
        __syncwarp();
        _Pragma("unroll 2") for (u32 step = 0; step < COLUMNS; step += STEP) {
            u64 column = group * COLUMNS + step + within;
            s.place = ((column >> c.depth) * B + instance) << c.depth | (column & (size - 1));
            s.in = s.place >= c.first && s.place < c.end;
            s.factor = factors + step + within;
            u32 index[WEIGHT];
            const uint2* at = (const uint2*)(indices + (step + within) * WEIGHT);
            EACH for (int j = 0; j < WEIGHT / 2; j++) {
                uint2 two = at[j];
                index[2 * j] = two.x;
                index[2 * j + 1] = two.y;
            }
            sum_entries(K(), c, s, index);
        }
    }
}

#ifndef ENCODE_BLOCKS
#define ENCODE_BLOCKS 3
#endif
#define ENCODE(NAME, KIND)                                                                       \
    extern "C" __global__ void __launch_bounds__(256, ENCODE_BLOCKS) encode_##NAME##_1(Code c) { \
        encode<KIND, 1>(c);                                                                      \
    }                                                                                            \
    extern "C" __global__ void __launch_bounds__(256, ENCODE_BLOCKS) encode_##NAME##_2(Code c) { \
        encode<KIND, 2>(c);                                                                      \
    }                                                                                            \
    extern "C" __global__ void __launch_bounds__(256, ENCODE_BLOCKS) encode_##NAME##_4(Code c) { \
        encode<KIND, 4>(c);                                                                      \
    }
ENCODE(cot, Xor)
ENCODE(key_128, XorFactors)
ENCODE(pairs_128, XorPairs)
ENCODE(key_61, Words61)
ENCODE(pairs_61, Pairs61)

// Adds the values of the noise to the `u` at their places.
extern "C" __global__ void add_noise(
    char* u, u32 stride, u64 first, u64 end, const u64* places, const uint4* values, u32 count,
    u32 words61) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count || places[i] < first || places[i] >= end) return;
    char* at = u + (places[i] - first) * stride;
    if (words61) {
        *(u64*)at = reduce61(*(u64*)at + values[i].x + ((u64)values[i].y << 32));
    } else {
        *(uint4*)at = words(block(*(uint4*)at) ^ block(values[i]));
    }
}

// ---- Correlated OTs

// A bit of each block, 32 in a word.
extern "C" __global__ void take_bits(const u32* in, u32* out, u64 count, u32 bit) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u32 bits = __ballot_sync(ALL, i < count && in[4 * i + bit / 32] >> bit % 32 & 1);
    if (lane_of() == 0 && i < count) out[i / 32] = bits;
}

// Exchanges bit `other` with the lowest.
extern "C" __global__ void exchange_bit(uint4* blocks, u64 count, u32 other) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    Block b = block(blocks[i]);
    u32 bit = 0;
    EACH for (int w = 0; w < 4; w++) bit |= (b.w[w] >> other % 32) & mask(other / 32 == w);
    u32 differ = (bit ^ b.w[0]) & 1;
    b.w[0] ^= differ;
    EACH for (int w = 0; w < 4; w++) b.w[w] ^= differ << other % 32 & mask(other / 32 == w);
    blocks[i] = words(b);
}

// The hash of OT number `first + i` with the key `start ^ (first + i)`: of a receiver's block, in
// place, or of a sender's block and of its sum with delta.
template <int N>
__device__ __forceinline__ void hash_ots(
    const uint4* in, uint4* out, u64 count, uint4 start, u64 first, uint4 delta) {
    load_table();
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        uint4 key = words(block(start) ^ block(first + i, 0));
        Block x[N], s[N];
        x[0] = block(in[i]);
        if (N == 2) x[N - 1] = x[0] ^ block(delta);
        EACH for (int n = 0; n < N; n++) s[n] = orthomorphism(x[n]) ^ block(key);
        u32 constant = 1;
        _Pragma("unroll 1") for (int round = 1; round < 10; round++) {
            key = next_key(key, constant);
            constant = doubled(constant);
            EACH for (int n = 0; n < N; n++) aes_round(s[n], key);
        }
        key = next_key(key, constant);
        EACH for (int n = 0; n < N; n++) {
            aes_last_round(s[n], key);
            __stcs(out + i * N + n, words(s[n] ^ orthomorphism(x[n])));
        }
    }
}
extern "C" __global__ void __launch_bounds__(256) hash_chosen(
    const uint4* in, uint4* out, u64 count, uint4 start, u64 first) {
    hash_ots<1>(in, out, count, start, first, make_uint4(0, 0, 0, 0));
}
extern "C" __global__ void __launch_bounds__(256) hash_pairs(
    const uint4* in, uint4* out, u64 count, uint4 start, u64 first, uint4 delta) {
    hash_ots<2>(in, out, count, start, first, delta);
}
