/* The table of subcommands. */
#include "cli/cli.h"

const tn_cli_command tn_cli_commands[] = {
    {"run",
     TN_CLI_RUN,
     "MODEL [--input [NAME=]FILE]... [option]...",
     "run a model",
     {"tenon run model.onnx --input x=photo.npy", "feed x from a file and print what comes out",
      "tenon run model.onnx --fill random --seed 7 --dim batch=4", "random inputs, the same for the same seed",
      "tenon run model.onnx --input ids=[[1,2,3]] --input scale=0.5 --output-dir out",
      "feed literals, write out/NAME.npy for each output"},
     "An input file is .npy, .npz (arrays by name), .pb (TensorProto, SequenceProto, OptionalProto), .bin (raw; type "
     "and\n"
     "shape from the model) or .json (nested lists). An unnamed input_M.* feeds the M-th input; other unnamed inputs "
     "go,\n"
     "in order, to the inputs that have no default.",
     tn_cli_run,
     1,
     1},
    {"info",
     TN_CLI_INFO,
     "MODEL [option]...",
     "what is inside a model, and whether it will load",
     {"tenon info model.onnx", "findings, inputs and outputs, parameters, nodes by operator",
      "tenon info model.onnx --json", "the same for programs", "tenon info model.onnx --ops used.txt",
      "write the list of operators used"},
     "Exit status 0 only if the model will load.",
     tn_cli_info,
     1,
     1},
    {"test",
     TN_CLI_TEST,
     "DIR... [option]...",
     "run test folders in the layout of the ONNX test suite",
     {"tenon test models/", "every folder below that holds model.onnx and test_data_set_*",
      "tenon test suite/node --filter 'test_conv*' --backend ref", "some of them, on the reference interpreter",
      "tenon test suite --jobs 4 --json", "four folders at a time, a report for programs"},
     "A folder is a test when it holds model.onnx, or a data.json whose url names a file in a sibling light/ folder. "
     "Its\n"
     "data sets run in order in one session. A case.json beside the model may set rtol, atol, shape_only, expect and\n"
     "error_mentions. Exit status 1 if a test failed.",
     tn_cli_test,
     1,
     UINT32_MAX},
    {"bench",
     TN_CLI_BENCH,
     "MODEL [--input [NAME=]FILE]... [option]...",
     "time a model",
     {"tenon bench model.onnx", "three seconds of runs on made-up inputs: times, share of the machine, memory",
      "tenon bench model.onnx --dim batch=8 --threads 1 --seconds 10 --json", "longer, one thread, for programs",
      "tenon bench model.onnx --per-op --profile trace.json",
      "what each operator took; a trace for chrome://tracing or Perfetto"},
     "Inputs left out are random (--fill says otherwise). Times are those of whole runs, results made and freed; the "
     "machine's\n"
     "own rates are measured before and after. One run more is profiled, for --per-op, --profile and the counts of\n"
     "operations and bytes.",
     tn_cli_bench,
     1,
     1},
    {"optimize",
     TN_CLI_OPTIMIZE,
     "MODEL -o OUT [option]...",
     "rewrite a model, write it back",
     {"tenon optimize model.onnx -o fast.onnx", "optimise, write the result as standard operators",
      "tenon optimize model.onnx -o new.onnx -O0 --opset 21", "nodes as written, in another operator set",
      "tenon optimize model.onnx -o model.tenon", "the binary form, which loads at once"},
     "OUT ends in .onnx, .tenon (binary form) or .txt (text form). Large models, and those that had it, have their "
     "tensors in\n"
     "OUT.data. At -O0 an ONNX model is written as it was read; at higher levels primitives become standard operators.",
     tn_cli_optimize,
     1,
     1},
    {"verify",
     TN_CLI_VERIFY,
     "MODEL [option]...",
     "check every optimisation on this model",
     {"tenon verify model.onnx", "each pass, the plan and each kernel against the reference, on made-up inputs",
      "tenon verify model.onnx --samples 20 --seed 7 --isa generic", "more of them, with the plain kernels",
      "tenon verify model.onnx --dim batch=4 --disable cse --json", "sizes fixed, a pass left out, for programs"},
     "Inputs are random and corner values (zeros of both signs, extremes, infinities, NaN); free sizes are sampled, 0\n"
     "and 1 included. A pass that says so must keep every bit; elsewhere a result may be off by what moves it when "
     "the\n"
     "roundings of the reference are moved. The first difference is named: pass or kernel, node, worst element. Exit\n"
     "status 1 if there is one.",
     tn_cli_verify,
     1,
     1},
    {.name = "bisect"},
    {.name = "diff"},
    {.name = "view"},
    {.name = "grad"},
    {.name = "train"},
    {.name = "compile"},
    {.name = "quantize"},
    {.name = "tune"},
    {.name = "serve"},
    {"ops",
     TN_CLI_OPS,
     "[NAME]... [option]...",
     "operators, element types, versions and gradients supported",
     {"tenon ops Conv conv", "the ONNX operator and the primitive", "tenon ops --json", "everything, for programs",
      "tenon ops --markdown > docs/operators.md", "a page of documentation"},
     "Without a name, all. --plugin adds the operators of a plugin.",
     tn_cli_ops,
     0,
     UINT32_MAX},
    {.name = NULL},
};
