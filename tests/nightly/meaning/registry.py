"""The table of specs: operator -> function(Draw) -> Case."""
SPECS = {}


def spec(*ops):
    def put(function):
        for op in ops:
            if op in SPECS:
                raise ValueError(op + " has two specs")
            SPECS[op] = function
        return function
    return put
