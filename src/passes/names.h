/* Lists of pass names as users write them. */
#ifndef TN_PASSES_NAMES_H
#define TN_PASSES_NAMES_H

#include "passes/pass.h"

/* Takes the next name from a list separated by commas, without blanks around it. False at the end. */
bool tn_name_next(const char **list, const char **name, size_t *length);
/* Steps between two names: letters put in, left out or exchanged. */
uint32_t tn_name_distance(const char *a, size_t a_length, const char *b, size_t b_length);
/* The nearest of what a context knows (passes; rewrites too when `rewrites`), or NULL when none is near. */
const char *tn_name_nearest(const tn_pass_context *context, bool rewrites, const char *name, size_t length);

#endif
