/* Random small graphs with free dimensions, bound to sizes that need not fit together (broadcasts, reshapes, windows, concatenations,
   contractions, slices; in the open, in branches and in loops), run by both back ends. */
#ifndef TESTS_SUPPORT_MISMATCH_H
#define TESTS_SUPPORT_MISMATCH_H

#include <stddef.h>
#include <stdint.h>

typedef enum mismatch_outcome {
    MISMATCH_NOT_BUILT, /* the builder refused the draw: no sizes could fit */
    MISMATCH_ERROR,     /* all ways of running ended in an error */
    MISMATCH_RESULT,    /* all gave the same results */
    MISMATCH_DIFFERENT  /* they did not agree: `why` says who said what */
} mismatch_outcome;

/* One draw. `text`, unless NULL, receives the graph's text when they differ (free it). */
mismatch_outcome mismatch_draw(uint64_t seed, char *why, size_t size, char **text);

#endif
