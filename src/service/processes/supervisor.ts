/**
 * Supervises the processes that serve behind the same ports (docs/deployment.md#several-processes-behind-one-port). It
 * serves nothing itself: it accepts connections and hands them to the processes in turn (`node:cluster`), starts those
 * again that die, and relays what they show of themselves.
 */
import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { constants } from 'node:os';
import { ExponentialBackoff, noJitterGenerator } from 'cockatiel';
import type { Logger } from 'pino';
import { deferred } from '../../lib/async/deferred.js';
import { within } from '../../lib/async/within.js';
import { VERSION } from '../../lib/version.js';
import { after, endTimer, ticks, type Timer } from '../../lib/world.js';
import type { Config } from '../config.js';
import { STOP_MS, type StopSignal } from '../stopping.js';
import {
  type Addresses,
  PLACE,
  type Place,
  type ProcessAnswer,
  type ProcessState,
  type Question,
  type Shown,
  type ToProcess,
  type ToSupervisor,
} from './messages.js';

/** Milliseconds before a process that has died is started again, doubled with each death in a row. */
const BACKOFF = new ExponentialBackoff({ initialDelay: 100, maxDelay: 30_000, generator: noJitterGenerator });
/** Milliseconds of serving after which a death counts as the first in a row. */
const LASTING_MS = 10_000;
/**
 * Milliseconds that a process has to answer: readiness waits 2 s for a silent engine, a commit 5 s for the lock of the
 * log.
 */
const ANSWER_MS = { readiness: 3_000, metrics: 3_000, commits: 7_000 } as const satisfies Record<Question, number>;

/** A place among the processes. The process in it is replaced when it dies. */
interface Slot {
  readonly number: number;
  worker: Worker | undefined;
  state: ProcessState;
  hasServed: boolean;
  /** Time at which the process began to serve, by the monotonic clock. */
  servingSince: number;
  deaths: number;
  /** The wait after the last death in a row; `undefined`: none has died yet. */
  wait: ReturnType<typeof BACKOFF.next> | undefined;
  timer: Timer | undefined;
  /** Whether it left a commit without an answer, and has answered nothing since. */
  silent: boolean;
}

interface Fleet {
  readonly logger: Logger;
  readonly slots: readonly Slot[];
  /** Ports as settings, with a free one in place of each 0: a process that is started again gets the same. */
  readonly ports: Readonly<Record<string, string>>;
  /** Questions to processes that are not answered yet, by their ids. */
  readonly questions: Map<number, { readonly slot: Slot; readonly resolve: (value: unknown) => void }>;
  lastId: number;
  /** The process that commits for all, so that they share its syncs to disk. */
  committer: Slot | undefined;
  /** Exit code of the whole once no process is left; `undefined`: it is not stopping. */
  exitCode: number | undefined;
}

/**
 * Starts the processes: the first alone, which makes what the data folder lacks, then the others. Ends this process
 * with the exit code of the whole.
 * @param started receives the function that stops all of them
 */
export async function supervise(
  config: Config,
  logger: Logger,
  started: (stop: (signal: StopSignal) => void) => void,
): Promise<void> {
  const slots = Array.from({ length: config.processes }, (_, index) => newSlot(index + 1));
  const ports = await portsOf(config);
  const fleet: Fleet = {
    logger,
    slots,
    ports,
    questions: new Map(),
    lastId: 0,
    committer: undefined,
    exitCode: undefined,
  };
  started((signal) => {
    if (fleet.exitCode !== undefined) return;
    logger.info({ signal }, 'stopping');
    stop(fleet, slots.some(({ hasServed }) => hasServed) ? 0 : 128 + constants.signals[signal]);
  });
  // Values of metrics may be NaN, which JSON has not.
  cluster.setupPrimary({ serialization: 'advanced' });
  start(fleet, slots[0]!);
}

const newSlot = (number: number): Slot => ({
  number,
  worker: undefined,
  state: 'waiting',
  hasServed: false,
  servingSince: 0,
  deaths: 0,
  wait: undefined,
  timer: undefined,
  silent: false,
});

async function portsOf({ host, port, metricsPort, opsPort }: Config): Promise<Record<string, string>> {
  const ports: Record<string, string> = {};
  for (const [name, given] of Object.entries({ PORT: port, METRICS_PORT: metricsPort, OPS_PORT: opsPort }))
    if (given !== undefined) ports[name] = String(given === 0 ? await freePort(host) : given);
  return ports;
}

async function freePort(host: string): Promise<number> {
  const server = createServer().listen(0, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

function start(fleet: Fleet, slot: Slot): void {
  const late = fleet.slots.some(({ hasServed }) => hasServed);
  const place: Place = { number: slot.number, version: VERSION, late };
  slot.state = 'starting';
  let worker: Worker;
  try {
    worker = cluster.fork({ ...fleet.ports, [PLACE]: JSON.stringify(place) });
  } catch (error) {
    return notStarted(fleet, slot, error);
  }
  slot.worker = worker;
  endHandedConnection(worker);
  worker.on('message', (message: ToSupervisor) => receive(fleet, slot, worker, message));
  worker.once('exit', (code: number | null, signal: string | null) => ended(fleet, slot, code, signal));
  worker.on('error', (err) => {
    if (worker.process.pid === undefined && slot.worker === worker) notStarted(fleet, slot, err);
    // A message that could not be sent: the end of the process follows, and tells of it.
    else fleet.logger.debug({ err, process: slot.number }, 'a process could not be reached');
  });
}

/** Takes a process that the system has not started for one that has died: no end of it is ever reported. */
function notStarted(fleet: Fleet, slot: Slot, err: unknown): void {
  fleet.logger.error({ err, process_number: slot.number }, 'the system could not start a process');
  ended(fleet, slot, 1, null);
}

/**
 * Closes the connection that was handed to a process last where the process dies. `node:cluster` hands over one at a
 * time, and leaves it open, without an owner, where the process dies before it has accepted it. Its client would wait
 * for an answer until it gives up. An accepted connection is closed here already: closing it again does nothing.
 */
function endHandedConnection(worker: Worker): void {
  const { process: child } = worker;
  const send = child.send.bind(child) as (...given: unknown[]) => boolean;
  let handed: { close(): void } | undefined;
  child.send = (...given: unknown[]): boolean => {
    handed = (given[1] as typeof handed) ?? handed;
    return send(...given);
  };
  // A process that ends by itself has accepted or refused all of them; the refused ones went to others.
  worker.once('exit', (code: number | null) => {
    if (code !== 0) handed?.close();
  });
}

function receive(fleet: Fleet, slot: Slot, worker: Worker, message: ToSupervisor): void {
  if (message.kind === 'serving') serves(fleet, slot, message.addresses);
  else if (message.kind === 'answer') {
    if (slot.silent) {
      slot.silent = false;
      chooseCommitter(fleet);
    }
    fleet.questions.get(message.id)?.resolve(message.value);
  } else if (message.kind === 'ask') {
    const { id, what, requests } = message;
    const answers = what === 'commits' ? committed(fleet, slot, requests) : answersOf(fleet, what);
    void answers.then((found) => send(worker, { kind: 'answers', id, answers: found }));
  }
}

/** Has the requests of a process committed by another one. */
async function committed(fleet: Fleet, slot: Slot, requests: unknown): Promise<unknown> {
  const { committer } = fleet;
  if (committer === undefined || committer === slot) return 'nowhere';
  const outcomes = await answerOf(fleet, committer, 'commits', requests);
  if (outcomes === undefined) {
    committer.silent = true;
    chooseCommitter(fleet);
  }
  return outcomes;
}

/** Lets the committer be another one where it does not serve any more. */
function chooseCommitter(fleet: Fleet): void {
  const can = (slot: Slot): boolean => slot.state === 'serving' && !slot.silent;
  if (fleet.committer !== undefined && !can(fleet.committer)) fleet.committer = undefined;
  fleet.committer ??= fleet.slots.find(can);
  for (const { worker } of fleet.slots) send(worker, { kind: 'committer', number: fleet.committer?.number });
}

function serves(fleet: Fleet, slot: Slot, { url, health, ops }: Addresses): void {
  const { slots, logger } = fleet;
  const isFirst = slots.every(({ hasServed }) => !hasServed);
  const isLast = !slot.hasServed && slots.every((one) => one === slot || one.hasServed);
  Object.assign(slot, { state: 'serving', hasServed: true, servingSince: ticks(), silent: false });
  chooseCommitter(fleet);
  if (isLast) logger.info({ url, health, ops, processes: slots.length }, 'all processes have started');
  if (isFirst && fleet.exitCode === undefined) for (const one of slots.filter((it) => it !== slot)) start(fleet, one);
}

function ended(fleet: Fleet, slot: Slot, code: number | null, signal: string | null): void {
  const { slots, logger } = fleet;
  const { state } = slot;
  Object.assign(slot, { worker: undefined, state: 'waiting', deaths: slot.deaths + 1 });
  for (const one of fleet.questions.values()) if (one.slot === slot) one.resolve(undefined);
  chooseCommitter(fleet);
  if (fleet.exitCode !== undefined) {
    if (state === 'serving' && code !== 0) fleet.exitCode ||= 1;
    endIfDone(fleet);
    return;
  }
  const canNotStart = state === 'starting' && !(slot.hasServed && slots.some((one) => one.state === 'serving'));
  if (canNotStart) {
    logger.fatal({ process_number: slot.number, code, signal }, 'a process could not start: all of them end');
    // A process that ends with 0 before it serves has failed, too.
    stop(fleet, (code ?? 128 + constants.signals[signal as NodeJS.Signals]) || 1);
    return;
  }
  const hasLasted = state === 'serving' && ticks() - slot.servingSince >= LASTING_MS;
  slot.wait = hasLasted || slot.wait === undefined ? BACKOFF.next() : slot.wait.next(undefined);
  const againMs = slot.wait.duration;
  logger.error({ process_number: slot.number, code, signal, againMs }, 'a process has ended, and is started again');
  slot.timer = after(againMs, () => start(fleet, slot));
}

/** Ends all processes, within the time of a stop, and then this one. */
function stop(fleet: Fleet, exitCode: number): void {
  fleet.exitCode = exitCode;
  for (const { timer, worker } of fleet.slots) {
    endTimer(timer);
    worker?.process.kill('SIGTERM');
  }
  after(STOP_MS, () => {
    for (const { worker } of fleet.slots) worker?.process.kill('SIGKILL');
    process.exit(exitCode === 0 ? 1 : exitCode);
  });
  endIfDone(fleet);
}

function endIfDone({ slots, logger, exitCode }: Fleet): void {
  if (slots.some(({ worker }) => worker !== undefined)) return;
  logger.info('stopped');
  process.exit(exitCode);
}

/** What all processes show. A process that does not serve gets no question. */
async function answersOf(fleet: Fleet, what: Shown): Promise<ProcessAnswer[]> {
  return Promise.all(
    fleet.slots.map(async (slot) => {
      const value = slot.state === 'serving' ? await answerOf(fleet, slot, what) : undefined;
      const { number, state, hasServed, deaths } = slot;
      return { number, state, hasServed, deaths, value };
    }),
  );
}

async function answerOf(fleet: Fleet, slot: Slot, what: Question, requests?: unknown): Promise<unknown> {
  const id = ++fleet.lastId;
  const { promise, resolve } = deferred<unknown>();
  fleet.questions.set(id, { slot, resolve });
  send(slot.worker, { kind: 'ask', id, what, requests });
  try {
    return await within(promise, ANSWER_MS[what], () => undefined);
  } finally {
    fleet.questions.delete(id);
  }
}

function send(worker: Worker | undefined, message: ToProcess): void {
  if (worker?.isConnected() === true) worker.send(message);
}
