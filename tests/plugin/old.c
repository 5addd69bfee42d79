/* A plugin of an interface version that does not exist. */
#define TN_PLUGIN_ABI_TESTED 999
#include <tenon/custom.h>
#undef TN_PLUGIN_ABI
#define TN_PLUGIN_ABI TN_PLUGIN_ABI_TESTED

TN_PLUGIN(set) {
    (void)set;
    return TN_OK;
}
