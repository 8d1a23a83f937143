"""What the doctor looks at: one module a subject, each with `look(situation)`, which yields findings.

They import nothing heavy, torch and triton least of all: what is wrong must be said in the first second, and also
where those cannot be imported.
"""
