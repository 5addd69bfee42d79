/* All of Tenon's public headers. */
#ifndef TENON_TENON_H
#define TENON_TENON_H

#include <tenon/api.h>
#include <tenon/build.h>
#include <tenon/custom.h>
#include <tenon/dim.h>
#include <tenon/graph.h>
#include <tenon/memory.h>
#include <tenon/model.h>
#include <tenon/passes.h>
#include <tenon/positions.h>
#include <tenon/session.h>
#include <tenon/status.h>
#include <tenon/tensor.h>
#include <tenon/types.h>

#endif
