/* Shared by the files that lower a graph; nothing outside lower/ includes it. */
#ifndef TN_LOWER_LOWERING_H
#define TN_LOWER_LOWERING_H

#include "base/error.h"
#include "lower/plan.h"

#define TN_NO_VIEW UINT32_MAX
#define TN_FUSE_OPERANDS 16 /* at most, in one kernel */
#define TN_FUSE_STEPS 48

/* Registers while a kernel grows, before their numbers are known: operand i is i, step j (epilogue steps counted on) is
   TN_REG_STEP | j, the reduced value is TN_REG_REDUCED. */
#define TN_REG_STEP 0x8000u
#define TN_REG_REDUCED 0x4000u

/* A kernel being grown: not emitted yet, because its only reader may take it in. The axes of its result value map to the kernel's
   outer axes: value axis d is outer axes axis[d]..axis[d + 1] (row-major; none where the value's size is 1 by construction). */
#define TN_HELD_MOST 8
typedef struct tn_draft {
    tn_kernel kernel; /* operand, step, extent in the lowering's arena; outputs 0 */
    uint8_t axis[TN_MAX_RANK + 1];
    uint8_t rank;
    uint16_t result;    /* register code of the value */
    bool channels_last; /* its value is better laid out with axis 1 innermost */
    bool in_order;      /* it lies in the order of its axes unless channels_last, and is no part of a concatenation */
    bool spreads;       /* stays open over the broadcast that reads it */
    tn_node broadcast;  /* that broadcast, once it is come by: the draft makes its result, or is finished first */
    tn_value value;
    tn_node nodes[TN_FUSE_STEPS];
    uint32_t node_count;
    /* while its values come together: those with readers to come, all of which are known to fit. By value: register code, readers to come */
    tn_value held[TN_HELD_MOST];
    uint16_t held_result[TN_HELD_MOST];
    uint32_t held_left[TN_HELD_MOST], held_count;
} tn_draft;

typedef struct tn_lowerer {
    tn_plan *plan;
    tn_graph *graph;
    const tn_lower_options *options;
    tn_arena scratch;
    tn_map size_of;      /* dim id -> tn_size */
    tn_map checked;      /* dim id -> region whose code has checked that it has a value of 0 or more */
    uint8_t *needed;     /* by node id */
    uint32_t *view_of;   /* by value id: place, TN_NO_VIEW */
    tn_draft **draft_of; /* by value id: draft that makes it, or NULL */
    uint32_t *made_in;   /* by value id: 1 + the slot that it is to be made in, contiguous; 0: one of its own */
    uint32_t values;
    uint32_t segment;         /* the last one that every run of the current region has bound */
    uint32_t *symbol_segment; /* by symbol index */
    uint32_t symbols;
} tn_lowerer;

/* --- plan.c: growing a plan ------------------------------------------------------------------------------------------------ */
/* A size for an expression; false when out of memory (or a null dim, whose error is the graph's). */
bool tn_lowering_size(tn_lowerer *l, tn_dim dim, tn_size *size);
bool tn_lowering_const(tn_lowerer *l, int64_t value, tn_size *size);
tn_dim tn_lowering_dim(const tn_lowerer *l, tn_size size);
/* A contiguous ARENA slot for a value's shape. UINT32_MAX: failed. */
uint32_t tn_lowering_arena_slot(tn_lowerer *l, tn_value value);
/* A place for `value` over a slot with the given layout (dims from the value's type). NULL strides: contiguous. */
uint32_t tn_lowering_view(tn_lowerer *l, tn_value value, uint32_t slot, tn_dim offset, const tn_dim *strides);
tn_status tn_lowering_emit(tn_lowerer *l, tn_instruction_op op, uint32_t a, uint32_t b);
/* The place of a value, emitting its draft if it has one. TN_NO_VIEW: failed. */
uint32_t tn_lowering_value(tn_lowerer *l, tn_value value);
/* Ends a draft: gives it an output slot and emits its CALL. */
tn_status tn_lowering_finish(tn_lowerer *l, tn_draft *draft);
/* A new draft for `value`: outer axes = the value's axes, no operands. */
tn_draft *tn_lowering_draft(tn_lowerer *l, tn_value value, tn_node node, uint8_t kind);
/* Room for a draft's operand; NULL when out of memory. strides zero (size of 0) on all axes, no guards. */
tn_access *tn_lowering_operand(tn_lowerer *l, tn_draft *draft);
/* Adds a step (an epilogue step once the draft reduces); UINT16_MAX when there is no room. Answers its register code. */
uint16_t tn_lowering_step(tn_draft *draft, tn_scalar_step step);
/* Takes an open STRIP draft into `draft` (its value's shape is the same, or is broadcast to it): its operands and steps; answers the register code of its
   value, or UINT16_MAX when it does not fit (nothing changed). */
uint16_t tn_lowering_merge(tn_lowerer *l, tn_draft *draft, tn_draft *part);
/* Reads a place along the draft's outer axes as its value's axes (place rank = value rank). */
tn_status tn_lowering_read(tn_lowerer *l, tn_draft *draft, uint32_t place);
/* The view of a draft's value in the concatenation that reads it, where it can be made there at once; TN_NO_VIEW: in none. */
tn_status tn_lowering_part(tn_lowerer *l, const tn_draft *draft, bool channels_last, uint32_t *place);
/* Whether a view of rank 3 and up lies with axis 1 innermost, its elements a few apart at most; further axes may have gaps. */
bool tn_view_is_channels_last(const tn_lowerer *l, const tn_view *view);
/* Strides of a value laid out so, from its dims. */
void tn_lowering_channels_last(tn_lowerer *l, tn_value value, tn_dim *strides);
/* Whether a value is an output of the graph: those are laid out as they are handed over. */
bool tn_lowering_is_output(const tn_lowerer *l, tn_value value);
bool tn_view_is_contiguous(const tn_lowerer *l, const tn_view *place);
tn_dim *tn_view_strides(tn_lowerer *l, const tn_view *place); /* in scratch */
/* What a kernel packed of a file need not stay in memory. */
void tn_lowering_forget(const tn_plan *plan, const tn_kernel *kernel);
/* The best way of the table to run a kernel. NULL: there is none. */
const tn_kernel_impl *tn_lowering_choose(const tn_lowerer *l, const tn_kernel *kernel);
/* Chooses the way a finished kernel runs and emits its CALL. */
tn_status tn_lowering_call(tn_lowerer *l, tn_kernel *kernel, uint32_t count, const tn_node *nodes);
/* Whether everything that is made of a contraction's value comes together again in one, by steps that its epilogue has room for: x * sigmoid(x). */
bool tn_lowering_comes_together(const tn_lowerer *l, const tn_draft *draft);
/* A draft's value is done, or stays open for its only reader when fusing. */
tn_status tn_lowering_close(tn_lowerer *l, tn_draft *draft);

/* Whether a size is 0 or more whatever the run's sizes are, or code that every run of this node comes by has checked it. */
bool tn_lowering_size_holds(const tn_lowerer *l, tn_node node, tn_dim dim);
/* Emits a check of axis `axis` of input `input` against `want`, unless it is known to hold. */
tn_status tn_lowering_require(tn_lowerer *l, tn_node node, tn_check_kind kind, uint8_t input, int axis, tn_dim want);

/* Emits a check that a size among a node's attributes is 0 or more, unless that is known. */
tn_status tn_lowering_require_size(tn_lowerer *l, tn_node node, tn_dim dim);

/* --- rows by how they lower; each answers TN_OK, or TN_ERR_UNSUPPORTED without a message to say: HOST ----------------------- */
tn_status tn_lower_scalar(tn_lowerer *l, tn_node node);
tn_status tn_lower_move(tn_lowerer *l, tn_node node);
bool tn_lowering_is_broadcast(const tn_graph *g, tn_node node);
tn_status tn_lower_reduce(tn_lowerer *l, tn_node node);
tn_status tn_lower_window(tn_lowerer *l, tn_node node);
tn_status tn_lower_contract(tn_lowerer *l, tn_node node);
tn_status tn_lower_control(tn_lowerer *l, tn_node node); /* if, loops of fixed shapes: BRANCH, ENTER and LOOP */
/* Loops of one region, none of which needs what another gives, at least one: as code of the plan, else HOST. */
tn_status tn_lower_loops(tn_lowerer *l, uint32_t count, const tn_node *nodes);
/* Whether a node is a loop that can be lowered later than in its turn. */
bool tn_lowering_is_loop(const tn_lowerer *l, tn_node node);
/* Whether a loop is better lowered together with one that comes later: nothing before that needs what it or the `count` loops that wait give. */
bool tn_lowering_loop_waits(const tn_lowerer *l, tn_node node, uint32_t count, const tn_node *waiting);
/* Whether kernels can copy a value, and all symbols that its dims use are bound here. */
bool tn_lowering_is_plain(const tn_lowerer *l, tn_value value);
/* Whether two values have one dtype and shape, of the second without its first `lead` axes. */
bool tn_lowering_same_dims(const tn_graph *g, tn_value a, tn_value b, int lead);
/* Every open draft is emitted: code that a run may leave out, or runs more than once, must not hold what the rest needs. */
tn_status tn_lowering_flush(tn_lowerer *l);
/* A slot of its own for a value, as its view. */
uint32_t tn_lowering_own_view(tn_lowerer *l, tn_value value);
tn_status tn_lower_host(tn_lowerer *l, tn_node node);
/* Lowers the nodes of a region in order. */
tn_status tn_lower_region(tn_lowerer *l, tn_region region);
/* A kernel that copies a view into another of the same shape. */
tn_status tn_lowering_copy(tn_lowerer *l, tn_node node, tn_dtype dtype, uint32_t from, uint32_t to);
/* Whether all symbols of a value's dims are bound in the current segment. */
bool tn_lowering_known(const tn_lowerer *l, tn_value value);
/* Whether kernels compute in this dtype. */
bool tn_lowering_admits(tn_dtype dtype);
/* Fills `over` of slots, after their lifetimes and the chains of kernels. */
void tn_lowering_in_place(tn_plan *plan);
/* Puts kernels together that a kernel of the table runs as one: before lifetimes are known. */
tn_status tn_lowering_attention(tn_lowerer *l);
/* The same of convolutions that follow each other. */
tn_status tn_lowering_bands(tn_lowerer *l);
/* Whether the run's code can come to instructions other than by the one before: [code.len + 1], of the plan's heap. NULL: out of memory. */
bool *tn_lowering_targets(const tn_plan *plan);
/* Fills first/last of every slot from the instructions. */
tn_status tn_lowering_lifetimes(tn_lowerer *l);

#endif
