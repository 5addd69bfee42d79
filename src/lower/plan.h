/* The compiled plan: a flat list of instructions over slots. One plan serves all sizes; a binding evaluates its dimension
   expressions and places its slots. A plan is immutable once made and may be run by many threads, each with its own frame. */
#ifndef TN_LOWER_PLAN_H
#define TN_LOWER_PLAN_H

#include <tenon/session.h>

#include "lower/kernel.h"
#include "lower/planner.h"

typedef enum tn_slot_kind {
    TN_SLOT_ARENA,    /* bytes at an offset of the frame's arena, placed when its segment is bound */
    TN_SLOT_INPUT,    /* a fed value: the caller's data (contiguous copy made when it is strided or unaligned) */
    TN_SLOT_CONSTANT, /* bytes of a constant tensor */
    TN_SLOT_OBJECT, /* a reference-counted host object: made by HOST instructions; kernels may read its data when it is a tensor */
    TN_SLOT_MOVING /* a place in other slots, another one on each trip of a loop: see tn_moving */
} tn_slot_kind;

typedef struct tn_slot {
    uint8_t kind;
    uint8_t dtype;
    bool fetched;        /* holds an output: lives to the end */
    tn_size bytes;       /* ARENA */
    tn_size count;       /* elements; ARENA */
    int32_t first, last; /* instructions between which it is live */
    uint32_t segment;    /* ARENA: the BIND after which its size is known */
    uint32_t input;      /* INPUT: which */
    tn_tensor *tensor;   /* CONSTANT: retained, contiguous; aligned, where not only rows of it are taken */
    bool aligned;        /* CONSTANT: what reads it wants that */
    tn_value value;      /* a graph value it was made for, for names in dumps and messages */
    uint32_t
        over; /* ARENA: 1 + the slot that it is written over in place, element by element, which ends where it begins; 0: none */
    int32_t until; /* ARENA: `last`, or that of the last of those that are written over it */
} tn_slot;

/* A value of the graph in the plan: a strided view of a slot. */
typedef struct tn_view {
    tn_value value;
    uint32_t slot;
    bool object; /* a host object of unknown rank, or no tensor: HOST instructions only */
    uint8_t rank;
    tn_size offset;        /* elements */
    tn_size *dim, *stride; /* [rank] */
} tn_view;

typedef enum tn_instruction_op {
    TN_DO_CALL, /* run kernel `a` */
    TN_DO_HOST, /* run node `a` by eval on host objects: inputs and outputs are places, see tn_host_call */
    TN_DO_BIND, /* evaluate the dimensions of segment `a` (after reading actual dims of the objects in it) and place its slots */
    TN_DO_CHECK,  /* end the run if one of the `b` checks from check `a` on does not hold */
    TN_DO_BRANCH, /* go to instruction `b` if the bool at view `a` is false; a = UINT32_MAX: always */
    TN_DO_ENTER, /* loop `a` begins: its moving slots lie where the first trip has them; go to instruction `b` if there is no trip */
    TN_DO_LOOP, /* the end of a trip of loop `a`: its moving slots move on; go back to instruction `b` if there is another */
    TN_DO_FORK, /* the parts of fork `a`, which end at instruction `b`, may run at once */
    TN_DO_END
} tn_instruction_op;

typedef struct tn_instruction {
    uint8_t op;
    uint32_t a, b;
} tn_instruction;

/* A HOST instruction: a node evaluated by its row on objects; places become tensors (views of slots), results go to OBJECT slots
   or are copied into ARENA slots. Control flow nodes run their regions by the interpreter until they are lowered. */
typedef struct tn_host_call {
    tn_node node;
    uint32_t inputs, input_count;   /* range in tn_plan.view_list: place ids; UINT32_MAX where absent */
    uint32_t outputs, output_count; /* slots (OBJECT or ARENA): range in tn_plan.slot_list */
    uint32_t outer, outer_count;    /* enclosing values its regions read: (value id, place id) pairs in view_list */
} tn_host_call;

/* Where a MOVING slot lies on a trip of its loop. What is scanned, stacked and carried is never copied for the loop's sake. */
typedef enum tn_moving_kind {
    TN_MOVING_CARRIED, /* `from` on the first trip; on later ones where slot `other`, MOVING too, was on the trip before */
    TN_MOVING_ROW,     /* a row of `from` */
    TN_MOVING_TURNS /* in `from`, on every second trip in `other`: what a trip makes, while it reads what the one before has made */
} tn_moving_kind;

typedef struct tn_moving {
    uint8_t kind;
    uint32_t slot, from, other;
    tn_size offset, step; /* in elements: begins at `offset` of `from`; ROW: `step` further on each trip */
} tn_moving;

typedef struct tn_loop {
    tn_node node;
    bool counted;          /* others end by a BRANCH */
    tn_size trips;         /* of a counted loop, */
    uint32_t limit;        /* or the view of an integer that says how many; UINT32_MAX: none */
    uint32_t first, count; /* range in tn_plan.moving, those that are carried before all others */
} tn_loop;

/* Loops that need nothing of each other. Each part is code that is run from its first instruction to that of the next part. */
#define TN_FORK_MOST 8
typedef struct tn_fork {
    uint32_t parts;
    uint32_t start[TN_FORK_MOST + 1]; /* the last: the end */
} tn_fork;

/* Symbols read from the actual dims of an object: at the start of a BIND. */
typedef struct tn_bind_read {
    uint32_t segment;
    uint32_t slot;  /* OBJECT or INPUT */
    tn_value value; /* whose type's dims are matched with the object's */
} tn_bind_read;

typedef enum tn_check_kind {
    TN_CHECK_SIZE, /* `size`, axis `axis` of output `value`, has a value of 0 or more: no window is larger than its image */
    TN_CHECK_EQUAL,     /* `size`, axis `axis` of input `value`, equals `want` */
    TN_CHECK_BROADCAST, /* the same, or is 1 */
} tn_check_kind;

/* What must hold of the sizes that a node gets, and is not known before they are bound. */
typedef struct tn_size_check {
    tn_node node;
    uint8_t kind;
    uint8_t value, axis;
    tn_size size, want;
} tn_size_check;

typedef struct tn_plan {
    tn_heap *heap;
    tn_graph *graph;         /* owned: optimised, frozen; dims, nodes for HOST, names */
    tn_arena arena;          /* of the arrays inside kernels and places */
    TN_VEC(tn_dim) size;     /* expressions by tn_size */
    tn_u32_vec size_segment; /* by tn_size: the first segment after which it can be evaluated */
    TN_VEC(tn_slot) slot;
    TN_VEC(tn_view) view;
    TN_VEC(tn_kernel) kernel;
    TN_VEC(tn_host_call) host;
    TN_VEC(tn_loop) loop;
    TN_VEC(tn_moving) moving;
    TN_VEC(tn_fork) fork;
    TN_VEC(tn_bind_read) bind_read;
    TN_VEC(tn_size_check) check;
    TN_VEC(tn_instruction) code;
    tn_u32_vec view_list, slot_list, kernel_node;
    uint32_t segments;
    tn_u32_vec symbol_segment; /* by symbol index: the segment that binds it, UINT32_MAX: none */
    tn_u32_vec input_view;     /* by graph input: its place, UINT32_MAX: unused */
    tn_u32_vec output_view;    /* by graph output */
    /* counts for `info` and `bench` */
    uint32_t operators, fused_operators;
    size_t weight_bytes, packed_bytes;
    struct tn_packs *packs; /* what its constants were brought to, with other plans; NULL: alone */
    tn_isa isa;             /* highest level in use */
    uint8_t reuse;          /* tn_reuse_option */
} tn_plan;

typedef struct tn_lower_options {
    int level;  /* 0: a kernel for each operator; 1 and up: fusion */
    tn_isa isa; /* highest level to use */
    const tn_kernel_table *kernels;
    struct tn_packs *packs; /* to share constants with other plans (packs.h), which it outlives; may be NULL */
    tn_layout_option layout;
    tn_reuse_option reuse;
    bool measure;       /* the plan takes the memory that one that computes takes, but computes nothing */
    bool describe_only; /* weights are neither packed nor aligned: the plan shows what it would be, and must not run */
} tn_lower_options;

/* Lowers a graph of primitives and composites (onnx nodes that wait for run time become HOST). Takes the graph over in any case.
   NULL with the error set. */
tn_plan *tn_lower(tn_heap *heap, tn_graph *graph, const tn_lower_options *options);
void tn_plan_destroy(tn_plan *plan);
/* From where to where a slot needs memory in its segment's arena, by the instructions; false: it has none of its own there, it lies in that
   of the slot it is written over. Outputs lie elsewhere. */
bool tn_plan_lifetime(const tn_plan *plan, uint32_t slot, tn_lifetime *life);
/* The slot in whose memory a slot lies: itself, or the first of those that are written over each other. */
uint32_t tn_plan_home(const tn_plan *plan, uint32_t slot);
/* The annotated text of a plan (what lies where, alias of, in place). */
tn_status tn_plan_print(const tn_plan *plan, tn_text *out);

#endif
