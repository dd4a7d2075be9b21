def write_plan(a, b):
    pass
