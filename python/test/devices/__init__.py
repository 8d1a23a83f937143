"""Real NPUs as they are found: by device nodes and by what npu-smi prints."""
