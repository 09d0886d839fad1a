"""Serve a model by llama.cpp's own HTTP server on 127.0.0.1. usage: GGUF PORT SLOTS CONTEXT NAME

It runs in the environment of the package `xllamacpp` and ends with the process that started it.
"""

from __future__ import annotations

import os
import signal
import sys
import time

import xllamacpp

path, port, slots, context, name = sys.argv[1:]
parameters = xllamacpp.CommonParams()
parameters.model.path = path
parameters.hostnames = ["127.0.0.1"]
parameters.port = int(port)
parameters.n_parallel = int(slots)
parameters.n_ctx = int(slots) * int(context)
parameters.model_alias = {name}
parameters.n_gpu_layers = 0
parameters.use_jinja = True
parameters.endpoint_metrics = True
for threads in (parameters.cpuparams, parameters.cpuparams_batch):
    threads.n_threads, threads.poll = 1, 0
server = xllamacpp.Server(parameters)
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
parent = os.getppid()
while os.getppid() == parent:
    time.sleep(1)
