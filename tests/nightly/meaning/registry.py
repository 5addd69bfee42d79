"""The table of specs: operator -> function(Draw) -> Case, and the domain of those outside the standard's own."""
SPECS, DOMAINS = {}, {}


def spec(*ops, domain=""):
    def put(function):
        for op in ops:
            if op in SPECS:
                raise ValueError(op + " has two specs")
            SPECS[op] = function
            DOMAINS[op] = domain
        return function
    return put
