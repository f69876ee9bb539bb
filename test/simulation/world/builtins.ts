/**
 * Node's own time and chance, which libraries use: while a simulation runs, they are those of the world that was
 * entered. Outside a simulation they are Node's own. `src` uses `lib/world.ts`.
 */
import crypto from 'node:crypto';
import { setMaxListeners } from 'node:events';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import perfHooks from 'node:perf_hooks';
import timers from 'node:timers';
import timersPromises from 'node:timers/promises';
import { Ajv } from 'ajv';
import {
  after,
  endTimer,
  every,
  loopDelay,
  randomBytes,
  randomFraction,
  randomInt,
  randomUUID,
  sleep,
  soon,
  systemMs,
  ticks,
  timeoutSignal,
} from '../../../src/lib/world.js';
import { replaceFilePromises, replaceFiles } from './files.js';
import { outside } from './outside.js';

/** Number of simulations that are running: one inside of another is an error of the test, but does no harm here. */
let running = 0;
let replaced = false;
const subtleCrypto = crypto.webcrypto.subtle;
/** Private keys that are remembered. */
const MOST_KEYS = 100;

/** Replaces the builtins until the returned function is called. */
export function enterBuiltins(): () => void {
  if (!replaced) replaceAll();
  replaced = true;
  running += 1;
  return () => void (running -= 1);
}

// eslint-disable-next-line typescript/no-explicit-any -- functions of every shape are replaced by such of the same
type Work = (...args: any[]) => any;

/** Replaces a method by another one, which is used while a simulation runs. */
function replace<O extends object, K extends keyof O>(object: O, name: K, make: (original: O[K] & Work) => Work): void {
  const original = object[name] as O[K] & Work;
  const simulated = make(original);
  const chosen = function (this: unknown, ...args: unknown[]): unknown {
    return running > 0 ? simulated.apply(this, args) : original.apply(this, args);
  };
  Object.defineProperty(object, name, { value: chosen, configurable: true, writable: true, enumerable: true });
}

function replaceAll(): void {
  replaceClocks();
  for (const object of [globalThis, timers]) replaceTimers(object);
  replaceTimerPromises();
  replaceChance();
  replaceThreadPool();
  replaceMachine();
  replaceCompiler();
  syncBuiltinESMExports();
}

function replaceClocks(): void {
  const RealDate = Date;
  const present = (): number => (running > 0 ? systemMs() : RealDate.now());
  const simulated: DateConstructor = new Proxy(RealDate, {
    construct: (target, args, made) =>
      Reflect.construct(target, args.length === 0 ? [present()] : args, made === simulated ? target : made) as object,
    get: (target, key) => (key === 'now' ? present : (Reflect.get(target, key) as unknown)),
  });
  globalThis.Date = simulated;
  replace(performance, 'now', () => ticks);
  replace(perfHooks, 'monitorEventLoopDelay', () => () => ({ ...loopDelay(1), mean: 0, max: 0 }));
}

type TimerFunctions = Pick<
  typeof timers,
  'setTimeout' | 'setInterval' | 'setImmediate' | 'clearTimeout' | 'clearInterval' | 'clearImmediate'
>;

function replaceTimers(object: TimerFunctions): void {
  replace(
    object,
    'setTimeout',
    () =>
      (run: Work, ms = 1, ...args: unknown[]) =>
        after(ms, () => run(...args)),
  );
  replace(
    object,
    'setInterval',
    () =>
      (run: Work, ms = 1, ...args: unknown[]) =>
        every(ms, () => run(...args)),
  );
  replace(
    object,
    'setImmediate',
    () =>
      (run: Work, ...args: unknown[]) =>
        soon(() => run(...args)),
  );
  for (const name of ['clearTimeout', 'clearInterval', 'clearImmediate'] as const)
    replace(object, name, () => endTimer);
}

function replaceTimerPromises(): void {
  interface Options {
    readonly signal?: AbortSignal;
  }
  replace(timersPromises, 'setTimeout', () => async (ms = 1, value?: unknown, { signal }: Options = {}) => {
    await sleep(ms, { signal }).catch((reason: unknown) => {
      throw Object.assign(new Error('The operation was aborted', { cause: reason }), { name: 'AbortError' });
    });
    return value;
  });
  replace(timersPromises, 'setImmediate', () => async (value?: unknown) => {
    await new Promise<void>(soon);
    return value;
  });
  replace(AbortSignal, 'timeout', () => timeoutSignal);
  replace(AbortSignal, 'any', () => anyOf);
}

/** As Node's, which holds a signal that somebody listens to until it is aborted: crashed processes would stay for good. */
function anyOf(signals: readonly AbortSignal[]): AbortSignal {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal, ...signals);
  for (const signal of signals) {
    if (signal.aborted) controller.abort(signal.reason);
    else signal.addEventListener('abort', () => controller.abort(signal.reason), { once: true });
  }
  return controller.signal;
}

function replaceChance(): void {
  replace(Math, 'random', () => randomFraction);
  replace(crypto, 'randomUUID', () => randomUUID);
  replace(crypto, 'randomBytes', () => (size: number, called?: (error: null, drawn: Buffer) => void) => {
    const drawn = randomBytes(size);
    if (called === undefined) return drawn;
    return soon(() => called(null, drawn));
  });
  replace(
    crypto,
    'randomInt',
    () => (least: number, end?: number) => (end === undefined ? randomInt(least) : least + randomInt(end - least)),
  );
  const fill = (view: NodeJS.ArrayBufferView): NodeJS.ArrayBufferView => {
    new Uint8Array(view.buffer, view.byteOffset, view.byteLength).set(randomBytes(view.byteLength));
    return view;
  };
  replace(crypto, 'randomFillSync', () => fill);
  const web = Object.getPrototypeOf(crypto.webcrypto) as typeof crypto.webcrypto;
  replace(web, 'getRandomValues', () => fill);
  replace(web, 'randomUUID', () => randomUUID);
}

/** Work that Node does on its pool of threads ends in the entry that starts it: at once, where Node can do that. */
function replaceThreadPool(): void {
  const done = (original: Work): Work =>
    async function (this: unknown, ...args: unknown[]): Promise<unknown> {
      return outside(async () => original.apply(this, args) as unknown);
    };
  const subtle = Object.getPrototypeOf(subtleCrypto) as typeof subtleCrypto;
  replaceHmac(subtle, done);
  replaceKeys();
  for (const name of ['digest', 'encrypt', 'decrypt', 'deriveBits'] as const) replace(subtle, name, done);
  replaceFiles(replace);
  replaceFilePromises(replace, done);
}

/** Reads a private key once: a run reads the same few again and again. */
function replaceKeys(): void {
  const known = new Map<string, crypto.KeyObject>();
  replace(crypto, 'createPrivateKey', (original) => (given: unknown) => {
    const text = JSON.stringify(given);
    const key = known.get(text) ?? (original(given as crypto.PrivateKeyInput) as crypto.KeyObject);
    if (known.size >= MOST_KEYS) known.clear();
    known.set(text, key);
    return key;
  });
}

/** Compiles equal schemas once: real processes compile each once in their lives, those of a run live for seconds. */
function replaceCompiler(): void {
  const compiled = new WeakMap<Ajv, Map<string, unknown>>();
  replace(
    Object.getPrototypeOf(Ajv.prototype) as Ajv,
    'compile',
    (original) =>
      function (this: Ajv, schema: object): unknown {
        const known = compiled.get(this) ?? new Map<string, unknown>();
        compiled.set(this, known);
        const text = JSON.stringify(schema);
        const validate = known.get(text) ?? (original.call(this, schema) as unknown);
        known.set(text, validate);
        return validate;
      },
  );
}

type CryptoKey = crypto.webcrypto.CryptoKey;

/** Makes HMACs at once: handing one to a thread of the pool takes longer than making it. */
function replaceHmac(subtle: typeof subtleCrypto, done: (original: Work) => Work): void {
  const secrets = new WeakMap<CryptoKey, Uint8Array>();
  const hmacOf = (secret: Uint8Array, { algorithm }: CryptoKey, data: Uint8Array): Buffer => {
    const { hash } = algorithm as crypto.webcrypto.HmacKeyAlgorithm;
    return crypto.createHmac(hash.name.replace('-', ''), secret).update(data).digest();
  };
  replace(subtle, 'importKey', (original) => async (format: string, data: Uint8Array, ...rest: unknown[]) => {
    const key = (await done(original).call(subtleCrypto, format, data, ...rest)) as CryptoKey;
    if (format === 'raw' && key.algorithm.name === 'HMAC') secrets.set(key, data);
    return key;
  });
  replace(subtle, 'sign', (original) => async (algorithm: unknown, key: CryptoKey, data: Uint8Array) => {
    const secret = secrets.get(key);
    if (secret !== undefined) return hmacOf(secret, key, data);
    return done(original).call(subtleCrypto, algorithm, key, data) as unknown;
  });
  replace(
    subtle,
    'verify',
    (original) => async (algorithm: unknown, key: CryptoKey, signature: Uint8Array, data: Uint8Array) => {
      const secret = secrets.get(key);
      if (secret !== undefined) return hmacOf(secret, key, data).equals(signature);
      return done(original).call(subtleCrypto, algorithm, key, signature, data) as unknown;
    },
  );
}

/** Every process of a simulation is on a machine of its own, with two processors. */
function replaceMachine(): void {
  replace(os, 'hostname', () => () => 'simulated');
  replace(os, 'availableParallelism', () => () => 2);
  const { pid } = process;
  Object.defineProperty(process, 'pid', { get: () => (running > 0 ? 1 : pid), configurable: true });
  // One error for all: making one costs more than what asks for it.
  const noProc = new Error('a simulated machine has no /proc');
  replace(fs, 'readFileSync', (original) => (file: unknown, ...options: unknown[]) => {
    if (typeof file === 'string' && file.startsWith('/proc/')) throw noProc;
    return original(file as string, ...(options as [])) as unknown;
  });
}
