// The page: paper to draw on, pictures that come with it, and what the worker says of both.
import { SIDE } from './digits.js';

const PICTURES = ['0-a', '0-b', '1-a', '1-b', '2-a', '3-a', '4-a', '5-a', '6-a', '7-a', '8-a', '9-a'];
/** The pictures that the network learned from were averages of 4x4 pixels of black and white. */
const FINE = 4 * SIDE;
const PEN = 22;

const element = (id) => document.getElementById(id);
const worker = new Worker('worker.js', { type: 'module' });
const waiting = new Map();
let asked = 0;

function fail(message) {
  element('error').textContent = message;
  element('error').hidden = false;
}

worker.onerror = (event) => fail(event.message ?? 'the worker cannot be loaded');
worker.onmessage = ({ data }) => {
  if (data.id !== undefined) {
    const { resolve, reject } = waiting.get(data.id);
    waiting.delete(data.id);
    return data.error ? reject(new Error(data.error)) : resolve(data.probabilities);
  }
  if (data.error) return fail(data.error);
  element('bytes').textContent = `${(data.bytes / 1024).toFixed(0)} KiB`;
  element('first').textContent = data.first ? `${data.first.toFixed(1)} ms` : 'less than the clock tells';
  element('median').textContent = `${(data.median * 1000).toFixed(1)} µs`;
};

/** The probabilities of the digits in a picture. */
function classify(levels) {
  return new Promise((resolve, reject) => {
    waiting.set(asked, { resolve, reject });
    worker.postMessage({ id: asked++, levels });
  });
}

const likeliest = (probabilities) => probabilities.indexOf(Math.max(...probabilities));

/** The grey levels of an image of 8x8 pixels. */
async function levelsOf(image) {
  await image.decode();
  const canvas = new OffscreenCanvas(SIDE, SIDE);
  const context = canvas.getContext('2d');
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, SIDE, SIDE);
  return Float32Array.from({ length: SIDE * SIDE }, (_, at) => data[4 * at] / 255);
}

async function showSample(name) {
  const figure = element('samples').appendChild(document.createElement('figure'));
  const image = figure.appendChild(new Image());
  const caption = figure.appendChild(document.createElement('figcaption'));
  image.alt = `a digit, ${name}`;
  image.src = `pictures/${name}.png`;
  const probabilities = await classify(await levelsOf(image));
  figure.dataset.picture = name;
  figure.dataset.digit = caption.textContent = likeliest(probabilities);
}

// What is drawn.

const paper = element('paper');
const pen = paper.getContext('2d', { willReadFrequently: true });
pen.lineWidth = PEN;
pen.lineCap = pen.lineJoin = 'round';

/** The rectangle that has ink, or nothing. */
function inked() {
  const { data, width, height } = pen.getImageData(0, 0, paper.width, paper.height);
  let [left, top, right, bottom] = [width, height, -1, -1];
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      if (data[4 * (y * width + x) + 3] < 128) continue;
      [left, right] = [Math.min(left, x), Math.max(right, x)];
      [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
    }
  }
  return right < 0 ? undefined : { left, top, width: right + 1 - left, height: bottom + 1 - top };
}

/** The drawing as the network learned digits: as high as the picture, in its middle. */
function drawn({ left, top, width, height }) {
  const scale = FINE / Math.max(width, height);
  const canvas = new OffscreenCanvas(FINE, FINE);
  const context = canvas.getContext('2d');
  const [wide, high] = [width * scale, height * scale];
  context.drawImage(paper, left, top, width, height, (FINE - wide) / 2, (FINE - high) / 2, wide, high);
  const { data } = context.getImageData(0, 0, FINE, FINE);
  const levels = new Float32Array(SIDE * SIDE);
  for (let y = 0; y < FINE; y++) {
    for (let x = 0; x < FINE; x++) {
      levels[(y >> 2) * SIDE + (x >> 2)] += data[4 * (y * FINE + x) + 3] / 255 / 16;
    }
  }
  return levels;
}

function show(probabilities) {
  element('answer').textContent = probabilities ? likeliest(probabilities) : '';
  const cells = Array.from(probabilities ?? new Float32Array(10), (probability, digit) => {
    const bar = document.createElement('i');
    bar.style.width = `${100 * probability}%`;
    return [digit, bar, `${(100 * probability).toFixed(1)} %`];
  });
  const cell = (content) => {
    const span = document.createElement('span');
    span.append(content);
    return span;
  };
  element('bars').replaceChildren(...cells.flat().map(cell));
}

async function read() {
  const rectangle = inked();
  show(rectangle && (await classify(drawn(rectangle))));
}

function line(from, to) {
  pen.strokeStyle = getComputedStyle(document.body).color;
  pen.beginPath();
  pen.moveTo(from.offsetX, from.offsetY);
  pen.lineTo(to.offsetX, to.offsetY);
  pen.stroke();
}

let last;
paper.addEventListener('pointerdown', (event) => {
  paper.setPointerCapture(event.pointerId);
  line(event, event);
  last = event;
});
paper.addEventListener('pointermove', (event) => {
  if (!last) return;
  line(last, event);
  last = event;
});
paper.addEventListener('pointerup', () => {
  last = undefined;
  read().catch((error) => fail(error.message));
});
element('clear').addEventListener('click', () => {
  pen.clearRect(0, 0, paper.width, paper.height);
  show();
});

show();
Promise.all(PICTURES.map(showSample)).catch((error) => fail(error.message));
