// Runs the model beside the page, which stays responsive whatever a run takes.
import { Digits, SIDE } from './digits.js';

/** Clocks of pages tick every 0.1 ms at worst; as many runs as take this long, in ms, are timed together. */
const SPAN = 2;
const SPANS = 25;
const MOST_RUNS = 4096;

/** Milliseconds of a run: of the first, and the median of later ones. */
function measure(digits) {
  const levels = new Float32Array(SIDE * SIDE);
  const timed = (runs) => {
    const begin = performance.now();
    for (let run = 0; run < runs; run++) digits.classify(levels);
    return performance.now() - begin;
  };
  const first = timed(1);
  let runs = 1;
  while (runs < MOST_RUNS && timed(runs) < SPAN) runs *= 2;
  const times = Array.from({ length: SPANS }, () => timed(runs) / runs).sort((a, b) => a - b);
  return { first, median: times[SPANS >> 1] };
}

const digits = Digits.load('digits.wasm');

onmessage = async ({ data: { id, levels } }) => {
  try {
    const probabilities = (await digits).classify(levels);
    postMessage({ id, probabilities });
  } catch (error) {
    postMessage({ id, error: error.message });
  }
};

try {
  postMessage({ bytes: (await digits).bytes, ...measure(await digits) });
} catch (error) {
  postMessage({ error: error.message });
}
