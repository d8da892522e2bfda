// The model as JavaScript sees it: `await Digits.load(url)`, then `classify(grey levels)`.

export const SIDE = 8;

export class Digits {
  /** Fetches the model and compiles it while it arrives. */
  static async load(url) {
    const response = await fetch(url);
    if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
    const bytes = response.clone().arrayBuffer();
    const { instance } = await WebAssembly.instantiateStreaming(response);
    return new Digits(instance.exports, (await bytes).byteLength);
  }

  constructor(exports, bytes) {
    this.exports = exports;
    this.bytes = bytes;
  }

  /** The probabilities of the ten digits, for 64 grey levels from 0 (paper) to 1 (ink), row by row. */
  classify(levels) {
    const { memory, pixels, probabilities, classify, message, message_length } = this.exports;
    // Every call may let memory grow, which replaces the buffer: addresses first.
    const [from, to] = [pixels(), probabilities()];
    new Float32Array(memory.buffer, from, SIDE * SIDE).set(levels);
    if (!classify()) {
      const [begin, length] = [message(), message_length()];
      throw new Error(new TextDecoder().decode(new Uint8Array(memory.buffer, begin, length)));
    }
    return new Float32Array(memory.buffer, to, 10).slice();
  }
}
