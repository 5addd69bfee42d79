/* tenon info: what is inside a model, and whether it will load. */
#include "cli/cli.h"

tn_status tn_cli_info(const tn_cli_options *options) {
    (void)options;
    return tn_fail(TN_ERR_UNSUPPORTED, "'tenon info' is not supported yet");
}
