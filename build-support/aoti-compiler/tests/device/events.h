// Waiting for events of the emulated drivers, and asking whether they are done. Part of `driver.cpp`.
#pragma once

// While it is set, work on streams is not done when somebody asks, and whoever waits for it waits forever.
int emulated_stuck = 0;

int NAME(cuEventQuery, hipEventQuery)(Event *event) {
  Call call;
  own(event, "an event");
  // It takes its time.
  static int asked = 0;
  if (emulated_stuck || ++asked % 4 != 0) return event->stream && !event->done ? 600 : 0;
  if (event->stream && !event->done) complete(*event->stream, event->number);
  return 0;
}
int NAME(cuEventSynchronize, hipEventSynchronize)(Event *event) {
  Call call;
  own(event, "an event");
  if (emulated_stuck) die("it waits forever");
  if (event->stream && !event->done) complete(*event->stream, event->number);
  return 0;
}
