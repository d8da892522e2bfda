// Runs a WebAssembly program of WASI under node: node wasi.mjs PROGRAM ARGUMENTS. It sees all files by their absolute paths.
import { readFile } from 'node:fs/promises';
import process from 'node:process';
import { WASI } from 'node:wasi';

const [, , program, ...rest] = process.argv;
const wasi = new WASI({ version: 'preview1', args: [program, ...rest], preopens: { '/': '/' }, returnOnExit: true });
const module = await WebAssembly.compile(await readFile(program));
const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
process.exit(wasi.start(instance));
