/** A member of a simulated service: a process that is started again whenever it ends, as a supervisor does. */
import pino from 'pino';
// Loaded before the simulation starts: what is loaded during a run takes real time.
import '../../../src/api/api.js';
import '../../../src/providers/payments/stripeEvents.js';
import { type Roles, startRoles } from '../../../src/service/roles.js';
import { startFailure, startWithRetries } from '../../../src/service/startFailure.js';
import type { Projection } from '../../../src/runtime/readmodels/index.js';
import { PROJECTIONS } from '../../../src/projections/index.js';
import type { Chance } from '../world/chance.js';
import type { Entry } from '../world/entryQueue.js';
import { type SimulatedProcess, startProcess } from '../world/simulatedProcess.js';
import type { Cluster } from './cluster.js';
import { type SimulatedListener, simulatedListener } from './listener.js';

export interface Member {
  readonly name: string;
  readonly roles: string;
  /** The process that runs at present. */
  process(): SimulatedProcess;
  listener(): SimulatedListener;
  /** Whether the present process has started its roles. */
  started(): boolean;
  /** Ends the present process as an operator does: it finishes its work first. */
  stop(): void;
  /** Ends the present process at once, and starts the next one after `ms`. */
  restAndRestart(ms: number): void;
  /** Number of starts so far. */
  starts(): number;
}

export interface MemberOptions {
  readonly name: string;
  /** Roles, comma-separated. */
  readonly roles: string;
  /** Receives the lines of the service's log. */
  readonly onLine: (line: string) => void;
}

/** The read models of a later release: a part of them has another version, and is built anew. */
function projectionsOf(release: number): readonly Projection[] {
  return PROJECTIONS.map((projection, index) =>
    (index + release) % 3 === 0 ? { ...projection, version: projection.version + release } : projection,
  );
}

/** Whether a read model lacks events of the log. */
function isBehind({ log, readStore: { documents } }: Cluster): boolean {
  return documents.checkpoints().some((name) => (documents.checkpoint(name) ?? '') < (log.end() ?? ''));
}

interface Running {
  readonly process: SimulatedProcess;
  readonly listener: SimulatedListener;
  /** `undefined` until they have started. */
  roles: Roles | undefined;
}

/** Virtual ms until an ended process is started again. */
const RESTART = { least: 100, most: 8_000 };
/** Greatest difference of a process's wall clock from the true time, ms. */
export const SKEW_MS = 1_500;
const PORT = 3_000;

export function startMember(cluster: Cluster, { name, roles, onLine }: MemberOptions): Member {
  const { simulation } = cluster;
  const chance: Chance = simulation.chance.stream(`member ${name}`);
  let present: Running | undefined;
  let starts = 0;
  /** Ms until the next start, where it is not left to chance. */
  let restMs: number | undefined;
  /** The next start, while no process runs. */
  let restart: Entry | undefined;

  function startAfter(inMs: number): void {
    restart = simulation.schedule({ owner: simulation.neutral, inMs, kind: 'restart', text: name, run: start });
  }

  function start(): void {
    restart = undefined;
    starts += 1;
    const skewMs = chance.between(-SKEW_MS, SKEW_MS);
    const process = startProcess(simulation, { name: `${name}.${starts}`, skewMs });
    const running: Running = { process, listener: simulatedListener(PORT), roles: undefined };
    present = running;
    cluster.disk.use(process);
    process.onEnd(() => {
      running.roles = undefined;
      const inMs = restMs ?? chance.between(RESTART.least, RESTART.most);
      restMs = undefined;
      startAfter(inMs);
    });
    process.start(`service ${roles}`, async () => serve(running));
  }

  async function serve(running: Running): Promise<void> {
    const { process, listener } = running;
    const config = cluster.config(roles);
    const line = (text: string): void => onLine(`${process.name} ${text}`);
    const logger = pino({ level: 'info', base: null }, { write: line });
    const listeners = { api: config.roles.has('api') ? listener : undefined, health: undefined, ops: undefined };
    if (config.roles.has('projector'))
      simulation.marks.sometimes('a projector starts behind the log', isBehind(cluster));
    const reset = (): never => {
      throw new Error('a simulated service is not reset');
    };
    try {
      const attempt = async (): Promise<Roles> =>
        startRoles({
          config,
          logger,
          listeners,
          reset,
          ...(cluster.release === 0 ? {} : { projections: projectionsOf(cluster.release) }),
          engines: cluster.enginesOf(process, logger),
          sender: cluster.receivers.senderOf(process),
          providers: await cluster.providersOf(process, logger),
        });
      running.roles = await startWithRetries(attempt, logger, { waitMs: config.enginesWaitMs });
      simulation.marks.sometimes('a process starts');
    } catch (error) {
      // What the program explains to its operator it may end with; anything else is a fault.
      if (startFailure(error, config) === undefined) throw error;
      simulation.marks.sometimes('a start fails');
      process.crash();
    }
  }

  /** Errors of closing are those of engines: the process ends all the same. */
  async function end({ process, roles }: Running): Promise<void> {
    await roles?.close().catch((error: unknown) => onLine(`${process.name} closing failed: ${String(error)}`));
    simulation.marks.sometimes('a process ends its work before it stops');
    process.crash();
  }

  start();
  const running = (): Running => {
    if (present === undefined) throw new Error(`${name} was not started`);
    return present;
  };
  return {
    name,
    roles,
    process: () => running().process,
    listener: () => running().listener,
    started: () => running().roles !== undefined,
    stop() {
      const stopped = running();
      stopped.process.start('stop', async () => end(stopped));
    },
    restAndRestart(ms) {
      if (restart === undefined) {
        restMs = ms;
        running().process.crash();
      } else {
        // Otherwise it would work alone for all that time.
        restart.cancelled = true;
        startAfter(ms);
      }
    },
    starts: () => starts,
  };
}
