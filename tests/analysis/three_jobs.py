"""Three periodic jobs in three classes over one small network, as an app that `syn check` is given in tests."""

from pathlib import Path

import synapticos as syn

SINE = Path(syn.__file__).parent / "app" / "sine.tflite"

app = syn.App("three", ram="64K")
angles = app.frames("angles", (1, 1), "int8")
control_model = app.model(SINE, name="control")
watch_model = app.model(SINE, name="watch")
control = app.pipeline("control", angles).model(control_model)
watch = app.pipeline("watch", angles).model(watch_model)
spare = app.pipeline("spare", angles).model(app.model(SINE, name="spare"))
app.job(control, every=2 * syn.ms, deadline=1700 * syn.us, priority=syn.REALTIME)
app.job(watch, every=5 * syn.ms, deadline=4 * syn.ms)
app.job(spare, every=20 * syn.ms, deadline=10 * syn.ms, priority=syn.BEST_EFFORT)
