"""The sine of x by a network, the smallest there is: bytes of a file in, numbers out.

    syn run examples/hello_world/app.py
    syn run examples/hello_world/app.py --board mps2-an521
"""

import synapticos as syn

app = syn.App("hello")
angles = app.frames("angles", (1, 1), "int8", file="angles.bin")  # 0..2 pi, as the network counts it
sine = app.model("sine.tflite")
wave = app.pipeline("wave", angles).model(sine).dequantize()
app.job(wave)
