/* Finding test folders. */
#ifndef TN_CLI_TEST_FIND_H
#define TN_CLI_TEST_FIND_H

#include "cli/test_folder.h"

typedef TN_VEC(tn_test) tn_test_list;

/* Appends the tests below `root`, in order of their names. A model of NULL: there is a data.json whose model is not here. `filter`:
   a glob for the folder's name, or for its path when it holds a '/'; NULL: all. */
tn_status tn_test_find(const char *root, const char *filter, tn_test_list *tests);
void tn_test_list_free(tn_test_list *tests);

#endif
