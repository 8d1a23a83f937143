"""Whether the project's own kernels compile for real SoCs: those of tutorials, of multi-rank tests and of the pages."""
