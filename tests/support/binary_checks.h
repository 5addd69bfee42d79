/* For tests of the binary form: writing and reading back, and files that are wrong on purpose. */
#ifndef TN_TESTS_BINARY_CHECKS_H
#define TN_TESTS_BINARY_CHECKS_H

#include "ir/binary.h"

/* Writes the graph, reads it, compares both graphs and their texts, and the weights with their checksums. False with the error set
   when anything differs. `options` as for reading. */
bool binary_survives(const tn_graph *graph, const tn_binary_options *options);
/* The bytes that writing gives, to be freed with tn_free(NULL, ...); NULL with the error set. */
uint8_t *binary_bytes(const tn_graph *graph, size_t *size);
/* Makes all checksums, the size and the marks right, so that what is wrong beneath them is seen by the reader. Leaves what is no
   such file as it is. */
void binary_seal(uint8_t *bytes, size_t size);
/* The entry of a section in the table, or NULL: code, flags at 4, offset at 8, size at 16, count at 24, checksum at 32, align at 40. */
uint8_t *binary_entry(uint8_t *bytes, size_t size, const char *code);

#endif
