#!/usr/bin/env python3
"""Checks what each operator means: random nodes, run by Tenon, by the standard's evaluator and by ONNX Runtime.

    meaning.py --driver build/meaning-driver [--op Resize ...] [--seed 1] [--draws 200] [--draw 17] [--invalid] [--seconds 600]

A result of Tenon must equal that of both. Where the two differ, it must equal one of them, and known.py says who is wrong, by the
operator's text. With --invalid the nodes are broken in one place: a status, no crash, no result where both refuse."""
import argparse
import collections
import functools
import os
import sys
import time

import numpy as np

import compare
import evaluators
import judges
import known
from breakage import break_case
from draw import F32, Draw, is_float
from registry import DOMAINS, SPECS
import specs_elementwise  # noqa: F401  (each fills the table)
import specs_shape  # noqa: F401
import specs_window  # noqa: F401
import specs_sequence  # noqa: F401
import specs_other  # noqa: F401
import specs_ml  # noqa: F401
import texts

BATCH = 200


def make(op, seed, number, invalid):
    d = Draw(op, seed, number, DOMAINS[op])
    case = SPECS[op](d)
    case.number = number
    if invalid:
        break_case(d, case)
        case.as_numbers |= op == "CastLike"  # made a cast to text: how many digits it has is open
    return case


def has_a_say(answer, whole):
    """Whether a refusal of a broken node says something of what was broken: who has no implementation of it, or refuses the whole
    node, too, says nothing."""
    R = evaluators.Refusal
    missing = ("NOT_IMPLEMENTED", "No registered implementation", "Could not find an implementation", "MLDataType for", "MemoryError")
    return isinstance(answer, R) and answer.kind == "refused" and not any(m in answer.text for m in missing) and not isinstance(whole(), R)


def judge(case, tenon, cpu, standard, ort, whole):
    """(kind, text): what is to be said of a case, or (None, ""). `whole(who)` asks an evaluator for the node before it was broken."""
    R = evaluators.Refusal
    for who, answer in (("ref", tenon), ("cpu", cpu)):
        if isinstance(answer, R) and answer.kind in ("died", "too long", "internal"):
            return "crash", "%s %r" % (who, answer)
    if isinstance(cpu, R) and cpu.kind == "limit" and not isinstance(tenon, R) and any(isinstance(y, evaluators.NoElements) for y in tenon):
        return None, ""  # no elements, but sizes whose product is no 64-bit number: a plan may refuse them
    if case.invalid and any(isinstance(a, R) and a.kind == "limit" and "bytes would be needed" in a.text for a in (tenon, cpu)):
        return None, ""  # how much memory a back end needs is its own
    if isinstance(tenon, R) != isinstance(cpu, R):
        return "backends", "ref %s, cpu %s" % (brief(tenon), brief(cpu))
    if not isinstance(tenon, R):
        got = compare.differences(tenon, cpu, case)
        if got and not endless(case):
            return "backends", "ref against cpu: " + got
    reason_e, reason_o = known.is_known(case, known.STANDARD), known.is_known(case, known.ORT)
    good = {}
    for who, answer, reason in (("standard", standard, reason_e), ("ort", ort, reason_o)):
        if not isinstance(answer, R) and not reason:
            if not isinstance(tenon, R) and known.is_cast(case, who):
                answer = [a.astype(t.dtype) for a, t in zip(answer, tenon)]
            good[who] = answer
    if not case.invalid:
        text = judges.witness(case)
        if text is not None:
            good["text"] = text
    if isinstance(tenon, R):
        if case.invalid:
            return None, ""
        if good and tenon.kind == "unsupported":
            return "unsupported", "tenon %r" % tenon
        if good:
            return "refused", "tenon %r%s" % (tenon, "" if len(good) == 2 else " (only %s answers)" % list(good)[0])
        return "nobody", "tenon %r" % tenon
    if case.judge and not case.invalid:
        got = case.judge(tenon)
        return ("differs", got) if got else (None, "")
    compared = compare.forms if case.judge else compare.differences  # how random numbers lie is known of whole nodes alone
    wrong = {who: compared(tenon, answer, case) for who, answer in good.items()}
    if not any(wrong.values()):
        if not good and case.invalid and isinstance(standard, R) and isinstance(ort, R):
            if not has_a_say(standard, lambda: whole("standard")) and not has_a_say(ort, lambda: whole("ort")):
                return None, ""
            if any(isinstance(y, evaluators.NoElements) for y in tenon):
                return None, ""  # neither evaluator holds such a shape
            row = known.is_open(case)
            if row:
                got = against_text(case, tenon, row[1])
                return ("meaning", "%s: %s" % (row[0], got)) if got else (None, "")
            if case.invalid.startswith("input ") and told(case, tenon):
                return None, ""
            return "accepted", "both refuse: standard %r, ort %r" % (standard, ort)
        return (None, "") if good else by_relatives(case, tenon, "standard %s, ort %s" % (brief(standard), brief(ort)))
    if all(wrong.values()):
        if case.invalid and known.is_unsaid(case):
            return None, ""
        both = ""
        if "standard" in good and "ort" in good:
            other = compare.differences(good["standard"], good["ort"], case)
            both = " [and they differ: %s]" % other if other else " [they agree]"
        return "differs", "; ".join("%s: %s" % p for p in wrong.items()) + both
    if wrong.get("text"):
        return "differs", "; ".join("%s: %s" % (w, t) for w, t in wrong.items() if t)
    bad = [w for w in wrong if wrong[w]]
    return "dispute", "; ".join("%s is alone: %s" % (b, wrong[b]) for b in bad)


def told(case, tenon):
    """Whether other inputs than were drawn have the result that the text gives them."""
    if case.op not in judges.SAYS:
        return False
    try:
        with np.errstate(all="ignore"):
            wanted = judges.SAYS[case.op](case)
    except Exception:  # a node that the formula does not fit
        return False
    return wanted is not None and compare.differences(tenon, wanted, case) is None


def by_relatives(case, tenon, why):
    """A valid node that nobody answers: of other floats, which the evaluators may have a kernel for, it means the same."""
    for dtype in () if case.own_width else (np.float32, np.float64):
        def other_of(x):
            return x.astype(dtype) if x is not None and is_float(x.dtype) else x
        opset = known.SAME_SINCE.get(case.op, case.opset)
        if case.invalid or (opset >= case.opset and not any(x is not None and is_float(x.dtype) and x.dtype != dtype for x in case.inputs)):
            continue
        other = texts.same_as(case, [other_of(x) for x in case.inputs], min(opset, case.opset))
        got = ask_all(other, tenon)
        if got:
            case.precision = F32
            wrong = [(who, compare.differences(tenon, answer, case)) for who, answer in got]
            if not any(w for _, w in wrong) or not all(w for _, w in wrong):
                return None, ""
            return "differs", "; ".join("%s of %s: %s" % (who, np.dtype(dtype), w) for who, w in wrong)
    return "alone", why


def ask_all(other, tenon):
    """(who, results in the types of Tenon's) of the evaluators that answer another node and are not known to be wrong."""
    out = []
    for who, ask in (("standard", evaluators.ask_standard), ("ort", evaluators.ask_ort)):
        if known.is_known(other, who):
            continue
        answer = evaluators.ask_apart(ask, [other.model().SerializeToString()], [other])[0]
        if not isinstance(answer, evaluators.Refusal):
            out.append((who, [a.astype(t.dtype) if isinstance(a, np.ndarray) and isinstance(t, np.ndarray) else a for a, t in zip(answer, tenon)]))
    return out


def against_text(case, tenon, says):
    """What differs from what the text says of a broken node."""
    if not says:
        return None
    try:
        wanted = says(case)
    except ValueError as e:
        return "by the text it has no result: %s" % e
    if wanted is None:
        return None
    if isinstance(wanted, list):
        return compare.differences(tenon, wanted, case)
    other, back = wanted if isinstance(wanted, tuple) else (wanted, lambda results: results)
    wrong = []
    for who, ask in (("standard", evaluators.ask_standard), ("ort", evaluators.ask_ort)):
        if known.is_known(other, who):
            continue
        answer = evaluators.ask_apart(ask, [other.model().SerializeToString()], [other])[0]
        if not isinstance(answer, evaluators.Refusal):
            answer = back(answer)
            if known.is_cast(other, who):
                answer = [a.astype(t.dtype) for a, t in zip(answer, tenon)]
            wrong.append(compare.differences(tenon, answer, case))
    return None if None in wrong else wrong[0] if wrong else "nobody answers the node of the same meaning, either"


def endless(case):
    """Whether a product may meet infinity or NaN: what that times a padded zero is, back ends may see differently."""
    return case.invalid and any(x is not None and x.dtype.kind == "f" and not np.isfinite(x).all() for x in case.inputs)


def brief(answer):
    return repr(answer) if isinstance(answer, evaluators.Refusal) else "answers"


def ask_whole(op, options, number, who):
    case = make(op, options.seed, number, False)
    ask = evaluators.ask_standard if who == "standard" else evaluators.ask_ort
    return evaluators.ask_apart(ask, [case.model().SerializeToString()], [case])[0]


INVALID = ("model", "input")  # of one kind: what is wrong is seen in the file, or in what is fed


def other_forms(options, cases, answers, tally, report):
    """A node means the same whatever the file says of the shapes: all forms answer alike, or refuse it alike."""
    drawn = [c.shapes for c in cases]
    for form in ("fixed", "free", "none"):
        for case in cases:
            case.shapes = form
        models = [case.model().SerializeToString() for case in cases]
        for backend, first in zip(("ref", "cpu"), answers[:2]):
            got, _ = evaluators.run_tenon(options.driver, backend, models, cases)
            for case, shapes, one, two in zip(cases, drawn, first, got):
                text = apart(one, two, case)
                if text and form != shapes:
                    tally["forms"] += 1
                    report("forms", case.op, case, "%s: %s shapes against %s shapes: %s" % (backend, shapes, form, text))
    for case, shapes in zip(cases, drawn):
        case.shapes = shapes


def apart(one, two, case):
    """How two answers of Tenon differ, or None."""
    R = evaluators.Refusal
    if isinstance(one, R) and isinstance(two, R):
        same = one.kind == two.kind or any(one.kind in k and two.kind in k for k in (INVALID, ("limit", "memory")))
        if any(t in a.text for a in (one, two) for t in ("does not fit in 64 bits", "a value would take more than")):
            return None  # no machine holds it, whatever the sizes that are not known: that is said first
        return None if same else "%r, %r" % (one, two)
    if isinstance(one, R) or isinstance(two, R):
        trips, go = (case.inputs + [None, None])[:2]
        if case.op == "Loop" and (trips is not None and (trips <= 0).all() or go is not None and not go.any()):
            return None  # a body that is not entered is looked at as far as its shapes are known
        if "bytes would be needed" in (one.text if isinstance(one, R) else two.text):
            return None  # how much memory a plan needs is its own
        return "%s, %s" % (brief(one), brief(two))
    if case.op == "Loop":  # of no trips: what size rows would have is not known in all forms
        kept = [i for i, (a, b) in enumerate(zip(one, two)) if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.size == b.size == 0)]
        one, two = [one[i] for i in kept], [two[i] for i in kept]
    got = compare.differences(one, two, case)
    return None if got and endless(case) else got


def run_op(op, options, tally, report):
    numbers = [options.draw] if options.draw is not None else range(options.draws)
    for begin in range(0, len(numbers), BATCH):
        cases, models = [], []
        for number in numbers[begin:begin + BATCH]:
            case = make(op, options.seed, number, options.invalid)
            try:
                models.append(case.model().SerializeToString())
            except Exception as e:  # a broken node that cannot even be written
                if not options.invalid:
                    raise RuntimeError("%s draw %d cannot be written" % (op, number)) from e
                tally["unwritable"] += 1
                continue
            cases.append(case)
        answers = []
        for backend in ("ref", "cpu"):
            got, errors = evaluators.run_tenon(options.driver, backend, models, cases)
            answers.append(got)
            if "runtime error" in errors or "Sanitizer" in errors:
                report("sanitizer", op, cases[0], errors[:3000])
        other_forms(options, cases, answers, tally, report)
        answers.append(evaluators.ask_apart(evaluators.ask_standard, models, cases))
        answers.append(evaluators.ask_apart(evaluators.ask_ort, models, cases))
        for i, case in enumerate(cases):
            got = [a[i] for a in answers]
            try:
                kind, text = judge(case, *got, functools.partial(ask_whole, op, options, case.number))
            except Exception as e:
                kind, text = "harness", "%s: %s" % (type(e).__name__, e)
            tally["draws"] += 1
            for who, answer in zip(("tenon", "cpu", "standard", "ort"), got):
                tally[who] += not isinstance(answer, evaluators.Refusal)
            tally["judged"] += kind is None
            if kind:
                tally[kind] += 1
                report(kind, op, case, text)
                if options.show:
                    print("\n".join("    %s: %s" % (w, a) for w, a in zip(("ref", "cpu", "standard", "ort"), got)))


FAULTS = ("crash", "sanitizer", "backends", "forms", "differs", "dispute", "refused", "unsupported", "harness", "nobody", "unjudged operators")
# of a broken node: where one evaluator agrees with Tenon, what it is to the other is no rule
OF_BROKEN = ("crash", "sanitizer", "backends", "forms", "harness", "accepted", "meaning", "differs")


def main():
    parse = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parse.add_argument("--driver", required=True)
    parse.add_argument("--op", nargs="*", help="operators; none: all that have a spec")
    parse.add_argument("--seed", type=int, default=1)
    parse.add_argument("--draws", type=int, default=200)
    parse.add_argument("--draw", type=int, help="this draw alone")
    parse.add_argument("--invalid", action="store_true")
    parse.add_argument("--seconds", type=float, help="no new operator is begun after these")
    parse.add_argument("--most", type=int, default=3, help="how many of a kind are shown for an operator")
    parse.add_argument("--show", action="store_true", help="the answers, too")
    parse.add_argument("--kinds", nargs="*", help="what is shown: faults, disputes, ...; none: all")
    options = parse.parse_args()
    start, total = time.monotonic(), collections.Counter()
    print("seed %d, %d draws each%s" % (options.seed, options.draws, ", broken nodes" if options.invalid else ""))
    ops = options.op or list(SPECS)
    left, unjudged = [], {}
    for op in ops:
        if options.seconds and time.monotonic() - start > options.seconds:
            left.append(op)
            continue
        begun = time.monotonic()
        tally, shown = collections.Counter(), collections.Counter()

        def report(kind, name, case, text):
            shown[kind] += 1
            if shown[kind] > options.most or (options.kinds and kind not in options.kinds):
                return
            print("%s: %s\n  meaning.py --op %s --seed %d --draw %d%s" % (
                kind.upper(), text, name, options.seed, case.number, " --invalid" if options.invalid else ""))
            print("  " + case.text().replace("\n", "\n  "))

        try:
            run_op(op, options, tally, report)
        except Exception as e:
            if len(ops) == 1:
                raise
            print("HARNESS %s: %s: %s" % (op, type(e).__name__, e))
            tally["harness"] += 1
        total.update(tally)
        if tally["alone"] or not tally["judged"]:
            unjudged[op] = (tally["alone"], tally["draws"])
        if tally["draws"] >= 50 and not tally["judged"] and not options.invalid and op not in known.NO_WITNESS:
            print("NO WITNESS: not one draw of %s was judged" % op)
            total["unjudged operators"] += 1
        tally["seconds"] = round(time.monotonic() - begun)
        print("%-24s %s" % (op, "  ".join("%s %d" % p for p in tally.items())), flush=True)
    print("all: " + "  ".join("%s %d" % p for p in total.items()) + "  %.0f s" % (time.monotonic() - start))
    if unjudged and not options.invalid:
        print("draws that nobody judged: " + ", ".join("%s %d of %d" % (op, n, m) for op, (n, m) in sorted(unjudged.items(), key=lambda p: -p[1][0])))
    if left:
        print("not begun in %.0f s: %s" % (options.seconds, " ".join(left)))
    # what was not begun is not proved
    sys.exit(1 if left or any(total[k] for k in (OF_BROKEN if options.invalid else FAULTS)) else 0)


if __name__ == "__main__":
    main()
